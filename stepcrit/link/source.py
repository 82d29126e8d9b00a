"""Where in the user's program a row comes from: the Python line and the module, when recorded.

Lines come from Python frames (with_stack) or from "Call stack" text; modules from `nn.Module:` frames,
"Module Hierarchy" text, or the innermost annotation that is not the profiler's or a library's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from stepcrit.link.backends import BACKEND_RANGE
from stepcrit.link.nesting import Nesting, inherit_from, nest, owner_at
from stepcrit.model.arrays import NONE, Int32Array, Int64Array, IntArray, distinct
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.links import Pieces

# Frames of the machinery around the user's code: builtins, torch itself, installed packages, the interpreter.
_LIBRARY = re.compile(
    r"[/\\](torch[/\\]|runpy\.py"
    r"|(threading|contextlib|functools|multiprocessing|concurrent|importlib|selectors|asyncio)([/\\]|\.py))"
    r"|lib[/\\]python"
)
_INSTALLED = ("site-packages", "dist-packages")
_FRAME = re.compile(r"\.py\(\d+\): ")
_NOT_A_MODULE = re.compile(
    r"^(ProfilerStep#|Optimizer\.|enumerate\(DataLoader\)|PyTorch Profiler|Iteration Start"
    r"|## Call CompiledFxGraph|Torch-Compiled|DistributedDataParallel\.forward|DataParallel\.forward)"
)


class Source(Struct, frozen=True, eq=False):
    """Per row: the innermost user frame (a row), the module (an index into `module_names`)."""

    frame: Int32Array
    module: Int32Array
    module_names: tuple[str, ...]
    module_source: str


def link_source(events: EventTable, host: Nesting) -> Source:
    """Attribute host rows to Python lines and modules. Device rows inherit later, from their launch."""
    frames = _python_frames(events)
    module, names, where = _modules(events, host, frames)
    if frames is None:
        return Source(np.full(len(events), NONE, np.int32), module, names, where)
    own = _rows_named(events, _is_user_frame)
    return Source(frames.nearest(own, own), module, names, where)


class _Frames(Struct, frozen=True, eq=False):
    """Python frames, nested, and host rows with a frame that is open at their start."""

    parent: Int32Array
    rows: Int64Array
    around: Int32Array

    def nearest(self, frames: Int64Array, values: IntArray) -> Int32Array:
        """For each host row the value of the nearest of some frames around it, NONE without one."""
        column = np.full(len(self.parent), NONE, np.int32)
        column[self.rows] = inherit_from(frames, values, self.parent)[self.around]
        return column


def frame_label(name: str) -> str:
    """A frame's line for people: the last two folders are enough to find it.

    >>> frame_label("/a/b/c/train.py(12): step")
    'b/c/train.py(12): step'
    """
    path, paren, rest = name.partition("(")
    return "/".join(path.replace("\\", "/").split("/")[-3:]) + paren + rest


def user_line(stack: str) -> str:
    """The innermost frame of the user's own code in a call stack's text ("" when there is none).

    >>> user_line("torch/nn/functional.py(12): relu;train.py(3): step")
    'train.py(3): step'
    """
    frames = (frame.strip() for frame in stack.split(";"))
    return next((frame_label(frame) for frame in frames if _is_user_frame(frame)), "")


def _is_user_frame(name: str) -> bool:
    if ".py(" not in name or name.startswith(("<", "nn.Module")) or any(part in name for part in _INSTALLED):
        return False
    return bool(_FRAME.search(name)) and not _LIBRARY.search(f"/{name}")


def _rows_named(events: EventTable, test: Callable[[str], bool]) -> Int64Array:
    """Python rows whose name passes a test, asked once per distinct name."""
    python = np.flatnonzero(events.is_kind(EventKind.PYTHON))
    passes = np.zeros(len(events.names), np.bool_)
    for i in distinct(events.name[python]).tolist():
        passes[i] = test(events.names[i])
    return python[passes[events.name[python]]]


def _python_frames(events: EventTable) -> _Frames | None:
    """Python frames nested on the thread they belong to, or None when there are none."""
    python, rows = (np.flatnonzero(events.is_kind(*kinds)) for kinds in ((EventKind.PYTHON,), HOST_KINDS))
    if not python.size:
        return None
    of_row, around = events.lane[rows], np.full(len(rows), NONE, np.int32)
    nesting = nest(events, python, _lanes_of(events, python))
    for lane in distinct(of_row).tolist():
        mine = of_row == lane
        around[mine] = owner_at(nesting.pieces, lane, events.start_ns[rows[mine]])
    inside = around >= 0
    return _Frames(nesting.parent, rows[inside], around[inside])


def python_pieces(events: EventTable, since_ns: int, until_ns: int) -> Pieces | None:
    """Threads tiled by their Python frames, as far as one is open between two instants; None when none were recorded."""
    python = np.flatnonzero(events.is_kind(EventKind.PYTHON))
    if not python.size:
        return None
    is_open = (events.start_ns[python] < until_ns) & (events.end_ns[python] > since_ns)
    return nest(events, python[is_open], _lanes_of(events, python)).pieces


def _lanes_of(events: EventTable, python: Int64Array) -> Int32Array:
    """The lane of each row, of Python frames (all of them) that of their thread.

    Some builds put frames of the main thread on thread 0, which no thread is called: such a lane, without
    any other host row, is taken for the busiest thread's. A lane with a number of its own is another thread
    of Python (a progress bar's, say), whose frames hold nothing of what the busiest does.
    """
    of_python, threads = (distinct(events.lane[rows]) for rows in (python, events.is_kind(*HOST_KINDS)))
    stray = of_python[~np.isin(of_python, threads)]
    ops = events.lane[events.is_kind(EventKind.CPU_OP)]
    if stray.size != 1 or not ops.size or events.lanes[int(stray[0])].tid != "0":
        return events.lane
    lane = events.lane.copy()
    lane[python[lane[python] == stray[0]]] = np.bincount(ops).argmax()
    return lane


def _modules(
    events: EventTable, host: Nesting, frames: _Frames | None
) -> tuple[Int32Array, tuple[str, ...], str]:
    """Module per host row from the best evidence the trace has."""
    if frames is not None:
        of_module = _rows_named(events, lambda name: name.startswith("nn.Module: "))
        if of_module.size:
            module = frames.nearest(of_module, events.name[of_module])
            return _compact(module, events.names, "nn.Module: ", "nn.Module frames")
    if (events.module >= 0).any():
        return _compact(events.module, events.modules, "", "Module Hierarchy")
    return _annotation_modules(events, host)


def _annotation_modules(events: EventTable, host: Nesting) -> tuple[Int32Array, tuple[str, ...], str]:
    """The innermost annotation of the user's own around each host row."""
    annotation = np.flatnonzero(events.is_kind(EventKind.ANNOTATION))
    mine = np.zeros(len(events.names), np.bool_)
    for i in distinct(events.name[annotation]).tolist():
        mine[i] = not (_NOT_A_MODULE.match(events.names[i]) or BACKEND_RANGE.match(events.names[i]))
    annotation = annotation[mine[events.name[annotation]]]
    if not annotation.size:
        return np.full(len(events), NONE, np.int32), (), ""
    module = inherit_from(annotation, events.name[annotation], host.parent)
    return _compact(module, events.names, "", "annotations")


def _compact(
    name: Int32Array, names: tuple[str, ...], prefix: str, where: str
) -> tuple[Int32Array, tuple[str, ...], str]:
    """Renumber the used names from 0."""
    rows = np.flatnonzero(name >= 0)
    used = distinct(name[rows])
    number = np.zeros(int(used.max(initial=0)) + 1, np.int32)
    number[used] = np.arange(len(used))
    module = np.full(len(name), NONE, np.int32)
    module[rows] = number[name[rows]]
    return module, tuple(names[i].removeprefix(prefix) for i in used.tolist()), where
