# The whole laboratory: JupyterLab, the notebooks, a Go and a C compiler. The Go
# releases that are measured are fetched when they are first needed.
#
#   docker build --tag gccost .
#   docker run --rm --publish 127.0.0.1:8888:8888 gccost
FROM debian:trixie-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates gcc git golang-go libc6-dev make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 jovyan \
    && install --directory --owner=jovyan --group=jovyan /home/jovyan/gccost

USER jovyan
ENV HOME=/home/jovyan
WORKDIR /home/jovyan/gccost

# The packages first: they change less often than what uses them.
COPY --chown=jovyan:jovyan requirements.lock ./
COPY --chown=jovyan:jovyan scripts/setup scripts/
RUN scripts/setup && rm -rf "$HOME/.cache"
ENV PATH=/home/jovyan/gccost/.venv/bin:$PATH

COPY --chown=jovyan:jovyan . .

EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "notebooks/00-results.ipynb"]
