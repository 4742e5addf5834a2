import signal

# While modules are imported nothing needs cleanup, so Ctrl-C ends the process directly.
interrupted = signal.getsignal(signal.SIGINT)
if interrupted is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from gccost.cli import main  # noqa: E402

signal.signal(signal.SIGINT, interrupted)
main(prog_name="gccost")
