"""stepcrit explains what one PyTorch training step costs, from a torch.profiler trace.

    import stepcrit as sc

    t = sc.load("trace.json.gz")
    t.steps.median().elapsed_ns
    g = t.graph()
    g.critical_path().to_pandas()
    g.slack()
    g.to_networkx()
    sc.diff("before.json.gz", "after.json.gz").to_pandas()

Names load when they are first used, so that `stepcrit --help` needs no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from stepcrit.comparison import Diff, diff
    from stepcrit.errors import InputError, StepcritError, UsageError
    from stepcrit.link.rules import ClassRules
    from stepcrit.link.steps import StepOptions
    from stepcrit.model.steps import Boundary, Step, Steps
    from stepcrit.session import CriticalPath, Graph, Options, Trace, load
    from stepcrit.slimming import SlimOptions, slim

_HOMES = {
    "Boundary": "stepcrit.model.steps",
    "ClassRules": "stepcrit.link.rules",
    "CriticalPath": "stepcrit.session",
    "Diff": "stepcrit.comparison",
    "Graph": "stepcrit.session",
    "InputError": "stepcrit.errors",
    "Options": "stepcrit.session",
    "SlimOptions": "stepcrit.slimming",
    "Step": "stepcrit.model.steps",
    "StepOptions": "stepcrit.link.steps",
    "StepcritError": "stepcrit.errors",
    "Steps": "stepcrit.model.steps",
    "Trace": "stepcrit.session",
    "UsageError": "stepcrit.errors",
    "diff": "stepcrit.comparison",
    "load": "stepcrit.session",
    "slim": "stepcrit.slimming",
}

__all__ = [
    "Boundary",
    "ClassRules",
    "CriticalPath",
    "Diff",
    "Graph",
    "InputError",
    "Options",
    "SlimOptions",
    "Step",
    "StepOptions",
    "StepcritError",
    "Steps",
    "Trace",
    "UsageError",
    "__version__",
    "diff",
    "load",
    "slim",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'stepcrit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - 40 ms that few commands need

    try:
        return version("stepcrit")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
