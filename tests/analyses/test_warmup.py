"""What in a slow step speaks of warming up: evidence that lies in it, and no more than that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stepcrit.analyses import warmup
from stepcrit.analyses.warmup import ALLOCATING, AUTOTUNING, BUFFERS, COMPILING, LOADING, WAITING, WarmUp
from stepcrit.answers.warmup import say_warm_up
from stepcrit.link.linker import link
from stepcrit.link.steps import find_steps
from stepcrit.model.events import EventKind
from stepcrit.model.trace import MemoryTable
from stepcrit.report.values import sentence_text
from stepcrit.session import load
from stepcrit.units import THIN
from tests.builders import trace

Event = dict[str, Any]
FILES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))
SLOW = [100, 900, 300, 100, 100, 100, 100]  # golden case A01 in kind: two steps of warm-up after the first
LATE = [100, 100, 100, 100, 100, 400, 100]
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def event(cat: str, name: str, start: int, dur: int, tid: int = 1) -> Event:
    return {"cat": cat, "name": name, "ts": start, "dur": dur, "pid": 1, "tid": tid, "args": {}}


def loop(periods: list[int], *more: Event) -> list[Event]:
    """Steps one after the other, each with one operator, on a host alone."""
    at, made = 0, []
    for i, period in enumerate(periods):
        made += [
            event("user_annotation", f"ProfilerStep#{i}", at, period),
            event("cpu_op", "aten::mm", at + 1, 5),
        ]
        at += period
    return [*made, *more]


def found(chrome: list[Event], memory: MemoryTable | None = None) -> dict[str, WarmUp]:
    raw = trace(chrome)
    kind = raw.events.kind.copy()
    kind[np.isin(raw.events.cat, [i for i, cat in enumerate(raw.events.cats) if cat == "overhead"])] = (
        EventKind.OVERHEAD
    )
    raw = replace(raw, events=replace(raw.events, kind=kind), memory=memory or raw.memory)
    links = link(raw)
    steps = find_steps(raw.events, links)
    return {one.step.removeprefix("ProfilerStep"): one for one in warmup.analyze(raw, links, steps)}


def said(made: dict[str, WarmUp]) -> list[str]:
    return [sentence_text(s).replace(THIN, " ") for s in say_warm_up(tuple(made.values()))]


@pytest.mark.parametrize(
    ("cat", "name", "kind"),
    [
        ("cpu_op", "Torch-Compiled Region: 0/0", COMPILING),
        ("cpu_op", "TorchDynamo Cache Lookup", COMPILING),
        ("user_annotation", "compile_fx_inner", COMPILING),
        ("python_function", "torch/_inductor/compile_fx.py(9): compile_fx", COMPILING),
        ("cpu_op", "CachingAutotuner.benchmark", AUTOTUNING),
        ("cuda_driver", "cuModuleLoadData", LOADING),
        ("cuda_driver", "cuLibraryLoadData", LOADING),
        ("cuda_runtime", "hipModuleLoadData", LOADING),
        ("overhead", "Lazy Function Loading", LOADING),
        ("overhead", "Runtime Triggered Module Loading", LOADING),
        ("cuda_runtime", "cudaMalloc", ALLOCATING),
        ("cuda_runtime", "cudaMalloc_v3020", ALLOCATING),
        ("cuda_runtime", "hipMalloc", ALLOCATING),
        ("cuda_driver", "cuMemCreate", ALLOCATING),
        ("overhead", "Activity Buffer Request", BUFFERS),
        ("cpu_op", LOADER, WAITING),
        ("cuda_runtime", "cudaMallocAsync", None),  # takes from a pool
        ("cuda_runtime", "hipModuleLaunchKernel", None),
        ("kernel", "autotuned_gemm", None),
        ("cpu_op", "nn.Module: Loader", None),
    ],
)
def test_names_tell_the_kind_of_evidence(cat: str, name: str, kind: str | None) -> None:
    made = found(loop(SLOW, event(cat, name, 200, 50, 2)))
    assert made["#1"].causes == ({kind: 50_000} if kind else {})
    assert made["#1"].unexplained == (kind is None)


def test_steps_before_the_steady_window_are_compared_with_its_median() -> None:
    made = found(loop(SLOW))
    assert {step: (one.extra_ns, one.is_slower, one.unexplained) for step, one in made.items()} == {
        "#0": (0, False, False),  # no boundary before it, and no slower
        "#1": (800_000, True, True),
        "#2": (200_000, True, True),
    }


def test_within_a_kind_nothing_counts_twice_and_nothing_counts_outside_its_step() -> None:
    more = [
        event("cuda_runtime", "cudaMalloc", 150, 60, 2),
        event("cuda_runtime", "cudaMalloc", 180, 50, 3),
        event("cuda_runtime", "cudaMalloc", 990, 30, 4),  # 10 of it in #1, 20 in #2
    ]
    made = found(loop(SLOW, *more))
    assert made["#1"].causes == {ALLOCATING: 90_000}
    assert made["#2"].causes == {ALLOCATING: 20_000}


def test_what_steady_steps_do_as_well_is_evidence_only_beyond_that() -> None:
    starts = [0, 100, 1000, 1300, 1400, 1500, 1600]
    each = [
        event("cpu_op", LOADER, start + 10, dur, 2)
        for start, dur in zip(starts, [20, 500, 40, 20, 20, 20, 20], strict=True)
    ]
    made = found(loop(SLOW, *each))
    assert made["#1"].causes == {WAITING: 480_000}
    assert made["#2"].causes == {}  # twice the usual is not beyond it
    assert made["#2"].unexplained


def test_what_takes_just_more_than_twice_the_usual_is_evidence() -> None:
    starts = [0, 100, 1000, 1300, 1400, 1500, 1600]
    each = [event("cpu_op", LOADER, start + 10, 41 if start == 1000 else 20, 2) for start in starts]
    assert found(loop(SLOW, *each))["#2"].causes == {WAITING: 21_000}


def test_a_call_too_short_to_matter_explains_nothing() -> None:
    assert found(loop(SLOW, event("cuda_runtime", "cudaMalloc", 150, 8, 2)))["#1"].unexplained
    assert not found(loop(SLOW, event("cuda_runtime", "cudaMalloc", 150, 9, 2)))["#1"].unexplained


def test_growing_reserved_memory_is_evidence_and_unrecorded_memory_is_not_zero() -> None:
    at, reserved = [150, 400, 500, 1400], [10, 70, 30, 70]
    some = np.ones(4, np.int64)
    memory = MemoryTable(
        np.array(at, np.int64) * 1000, some, some, np.array(reserved, np.int64), some.astype(np.int32), some.astype(np.int32)
    )  # fmt: skip
    made = found(loop(SLOW), memory)
    assert (made["#1"].grown_bytes, made["#2"].grown_bytes) == (60, 0)
    assert not made["#1"].unexplained
    assert made["#2"].unexplained
    assert found(loop(SLOW))["#1"].grown_bytes is None


def test_outliers_are_looked_at_as_well() -> None:
    made = found(loop(LATE, event("cuda_runtime", "cudaMalloc", 510, 200, 2)))
    assert (made["#5"].is_outlier, made["#5"].extra_ns) == (True, 300_000)
    assert made["#5"].causes == {ALLOCATING: 200_000}
    assert said(made) == ["1 outlier: 300 µs slower; in it: allocating memory 200 µs"]


def test_without_a_steady_window_nothing_is_slower_than_it() -> None:
    made = found(loop([900, 100], event("cuda_runtime", "cudaMalloc", 100, 200, 2)))
    assert (made["#0"].extra_ns, made["#0"].is_slower, made["#0"].unexplained) == (None, False, False)
    assert said(made) == ["ProfilerStep#0 took 900 µs; in it: allocating memory 200 µs"]
    assert said(found(loop([900, 100]))) == []


def test_a_whole_capture_is_no_warm_up() -> None:
    assert found([event("cpu_op", "aten::mm", 0, 10)]) == {}


def test_at_most_three_sentences_say_it() -> None:
    slow = [100, 900, 300, 100, 100, 100, 100, 400, 100, 100]
    assert said(found(loop(slow))) == [
        "ProfilerStep#1 is 800 µs slower than the steady median, cause not in the trace",
        "1 more step that does not count: 200 µs slower, cause not in the trace",
        "1 outlier: 300 µs slower, cause not in the trace",
    ]


def test_evidence_for_less_than_half_of_it_is_not_said_to_be_all() -> None:
    assert said(found(loop(SLOW, event("cuda_runtime", "cudaMalloc", 150, 399, 2))))[0] == (
        "ProfilerStep#1 is 800 µs slower than the steady median; in it: allocating memory 399 µs; "
        "most of it has no cause in the trace"
    )
    assert "most" not in said(found(loop(SLOW, event("cuda_runtime", "cudaMalloc", 150, 400, 2))))[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_fixture_keeps_the_sums(path: Path) -> None:
    made = load(path)
    odd = warmup.analyze(made.raw, made.links, made.steps)
    by_label = {step.label: step for step in made.steps}
    assert len(say_warm_up(odd)) <= 3
    for one in odd:
        step = by_label[one.step]
        assert one.elapsed_ns == step.elapsed_ns
        assert all(0 < ns <= step.host_end_ns - step.host_start_ns for ns in one.causes.values())
