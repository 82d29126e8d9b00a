"""`stepcrit` and `python -m stepcrit`: ready for signals before anything is imported that takes time."""

from __future__ import annotations

import gc
import os
import signal
import sys

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
CYCLES_AFTER = 100_000
"""So many new containers before Python looks for unreachable cycles. After every 700 of them, as Python 3.11 does,
that takes 6 to 9 % of a run on a small trace, most of it while modules load, and nearly nothing is found."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(CYCLES_AFTER)
    for name in SIGNALS:
        number = getattr(signal, name, None)
        # ignored from birth, as under nohup or behind & in a script: so it stays
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)

    from stepcrit.cli.main import run  # noqa: PLC0415 - a signal may come while this loads

    code = run(sys.argv[1:])
    gc.freeze()  # all there is ends with the process: Python would look through it for cycles once more, for 70 ms
    sys.exit(code)


def leave(number: int, _frame: object) -> None:
    """End here and now, with the shell's exit code for a signal and no draft left.

    An exception would have to get past every `except` and every callback on its way, and those of an import,
    of a finalizer or of compiled code may keep it.
    """
    drafts = sys.modules.get("stepcrit.report.drafts")
    if drafts is not None and hasattr(drafts, "discard"):  # not while it loads
        drafts.discard()
    os._exit(128 + number)


if __name__ == "__main__":
    main()
