# The whole laboratory: JupyterLab with a Python and a Go kernel, Go, a C compiler
# and a JDK. Nothing is fetched when it runs. Binder takes it as it is.
#
#   make docker, docker-lab, docker-report, docker-test
#
# The base is a dated Debian 13, pinned by the digest of its multi-architecture index, which
# github.com/docker-library/repo-info lists in repos/debian/remote/trixie-20260918-slim.md.
# To renew it: take a newer date there (or `docker buildx imagetools inspect
# debian:trixie-YYYYMMDD-slim`) and its digest, change both here, run make docker-test.
# To build on a stand-in: docker build --build-arg BASE=IMAGE.
ARG BASE=debian:trixie-20260918-slim@sha256:a99cfc517144bc59b1978475ec53b46ecabec7e43635402ee5b77cc54cd1b20a
FROM $BASE

# The user, by Binder's build arguments.
ARG NB_USER=jovyan
ARG NB_UID=1000

RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates gcc git golang-go libc6-dev make openjdk-21-jdk-headless \
        python3 python3-venv \
    && apt-get clean && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid "$NB_UID" --user-group "$NB_USER" \
    && install --directory --owner="$NB_USER" --group="$NB_USER" "/home/$NB_USER/gccost"

USER $NB_USER
ENV HOME=/home/$NB_USER
WORKDIR $HOME/gccost

# What changes least comes first, so that an edited notebook rebuilds the last layers only.
COPY --chown=$NB_USER:$NB_USER locks/requirements.lock locks/
COPY --chown=$NB_USER:$NB_USER scripts/setup scripts/
# matplotlib's list of fonts stays in $HOME/.cache.
RUN scripts/setup && rm -rf "$HOME/.cache/pip" "$HOME/.cache/uv"
ENV PATH=$HOME/gccost/.venv/bin:$PATH

# The releases that are measured, JMH, Node.js, and the Go kernel. The build fails without
# today's Go release or the first document's; any other that cannot be downloaded is not measured.
COPY --chown=$NB_USER:$NB_USER locks/ locks/
COPY --chown=$NB_USER:$NB_USER javasrc/ javasrc/
COPY --chown=$NB_USER:$NB_USER gosrc/ gosrc/
COPY --chown=$NB_USER:$NB_USER data/*.csv data/
COPY --chown=$NB_USER:$NB_USER gccost/ gccost/
RUN python -m gccost fetch \
    && python -m gccost kernel \
    && rm -rf "$HOME/.cache/go-build" "$HOME/go/pkg/mod/cache/download/golang.org/toolchain/@v/"*.zip

COPY --chown=$NB_USER:$NB_USER . .
# JupyterLab hides the charts of a notebook that is not trusted.
RUN jupyter trust notebooks/*.ipynb

EXPOSE 8888
# The link that it prints leads to the results.
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--LabApp.default_url=/lab/tree/00-results.ipynb", "notebooks/00-results.ipynb"]
