"""Which kernels run: the plain ones, or the compiled ones where this installation has built them.

A kernel is a loop that runs once an event. Each has a plain form, in Python, which says what is right,
and may have a compiled form (`NAME.c` here, module `_NAME`) that gives the same answer sooner. Where no C
compiler was there when stepcrit was installed, there are no compiled forms, and nothing else is different.

    if kernels.chosen() == kernels.COMPILED:
        from stepcrit.kernels import _scan
"""

from __future__ import annotations

import os
from functools import cache

from stepcrit.errors import UsageError

VARIABLE = "STEPCRIT_KERNELS"
PLAIN, COMPILED = "plain", "compiled"

REVISIONS = {"nesting": 3, "scan": 3, "schedule": 2}
"""What each compiled module must say of itself: one that was built from older text is not used."""


def chosen() -> str:
    """PLAIN or COMPILED, as the environment asks; where it does not, the compiled ones where they are built.

    Raises:
        UsageError: it asks for kernels that there are not.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in {"", PLAIN, COMPILED}:
        raise UsageError(f"{VARIABLE} is {wanted!r}, which names no kernels", do=_advice(wanted))
    if wanted == PLAIN:
        return PLAIN
    absent = _absent()
    if wanted and absent:
        raise UsageError(
            f"{VARIABLE} asks for the compiled kernels, and {absent}",
            do="Install stepcrit again where there is a C compiler (cc), or do without: unset the variable.",
        )
    return PLAIN if absent else COMPILED


@cache
def _absent() -> str:
    """Why the compiled kernels cannot run here, or "". All of them do, or none."""
    try:
        import stepcrit.kernels._nesting as nesting  # noqa: PLC0415 - they may not be there
        import stepcrit.kernels._scan as scan  # noqa: PLC0415
        import stepcrit.kernels._schedule as schedule  # noqa: PLC0415
    except ModuleNotFoundError:
        return "this installation has none"
    except ImportError as error:
        return f"they cannot be loaded: {error}"
    built = {"nesting": nesting.REVISION, "scan": scan.REVISION, "schedule": schedule.REVISION}
    if built != REVISIONS:
        return "those of this installation are of another version"
    return ""


def _advice(wanted: str) -> str:
    """The values there are, the one that may have been meant first."""
    import difflib  # noqa: PLC0415 - where something is wrong only

    near = difflib.get_close_matches(wanted.strip().lower(), (PLAIN, COMPILED), n=1, cutoff=0.5)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return f"{meant}Set it to {PLAIN} or {COMPILED}, or unset it."
