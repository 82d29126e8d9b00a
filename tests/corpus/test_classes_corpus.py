"""Over real traces: next to no kernel time is of a name that stepcrit does not know."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from stepcrit.errors import InputError
from stepcrit.ingest import read_trace
from stepcrit.link.linker import link
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import EventKind

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
FOLDERS = sorted(path for path in CORPUS.glob("*") if path.is_dir())
NOT_NAMED = {"hta-mtia-inf", "hta-a100-critpath", "kineto-h100-flowfix"}
"""A device that runs whole networks as one activity ("merge"); small recordings of a kernel that only spins, and of
kernels that the profiler calls "Kernel"."""
LIMIT = 0.02

pytestmark = pytest.mark.skipif(not FOLDERS, reason="set STEPCRIT_CORPUS to run over real traces")


def times(folder: Path) -> tuple[int, int]:
    """Kernel time of a folder's traces, and how much of it is `other kernel`, in ns."""
    every = unknown = 0
    for path in sorted(folder.iterdir()):
        try:
            raw = read_trace(path)
        except InputError:
            continue
        events, work = raw.events, link(raw).work
        kernels = events.is_kind(EventKind.KERNEL)
        length = np.where(kernels, events.end_ns - events.start_ns, 0)
        every += int(length.sum())
        unknown += int(length[work == WorkClass.KERNEL].sum())
    return every, unknown


def test_share_of_unknown_kernels_is_small_in_every_trace_whose_kernels_have_names() -> None:
    share = {}
    for folder in FOLDERS:
        every, unknown = times(folder)
        if folder.name not in NOT_NAMED:
            share[folder.name] = unknown / max(every, 1)
    assert {name: part for name, part in share.items() if part > LIMIT} == {}
