"""Where a row comes from: the user's line and the module, from whatever the trace recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stepcrit.link.linker import link
from stepcrit.link.source import frame_label
from stepcrit.model.links import Links
from stepcrit.model.trace import RawTrace
from tests.builders import trace

Event = dict[str, Any]
STEP = "train.py(30): step"
MAIN = "train.py(12): main"
TORCH = "/usr/lib/python3.11/site-packages/torch/nn/functional.py(2): linear"


def host(name: str, start: int, end: int, *, cat: str = "cpu_op", pid: int = 1, tid: int = 1) -> Event:
    return {"cat": cat, "name": name, "ts": start, "dur": end - start, "pid": pid, "tid": tid}


def frame(name: str, start: int, end: int, *, pid: int = 1, tid: int = 1) -> Event:
    return host(name, start, end, cat="python_function", pid=pid, tid=tid)


def call(start: int, end: int, corr: int) -> Event:
    return {**host("cudaLaunchKernel", start, end, cat="cuda_runtime"), "args": {"correlation": corr}}


def kernel(start: int, end: int, corr: int, name: str = "k") -> Event:
    args = {"correlation": corr, "stream": 7}
    return {"cat": "kernel", "name": name, "ts": start, "dur": end - start, "pid": 0, "tid": 7, "args": args}


def row_of(raw: RawTrace, name: str) -> int:
    return next(row for row in range(len(raw.events)) if raw.events.name_of(row) == name)


def frame_of(raw: RawTrace, links: Links, name: str) -> str | None:
    """The user's frame of a row."""
    row = int(links.frame[row_of(raw, name)])
    return raw.events.name_of(row) if row >= 0 else None


def module_of(raw: RawTrace, links: Links, name: str) -> str | None:
    """The module of a row."""
    index = int(links.module[row_of(raw, name)])
    return links.module_names[index] if index >= 0 else None


# --- lines -------------------------------------------------------------------------------------


def stacked(*, pid: int = 1, tid: int = 1) -> RawTrace:
    """An operator under a library frame, under two frames of the user's; and one outside of all."""
    # frames |main 0..50: |step 5..40: |torch 10..30|      |
    # host                              |aten::mm 12..28: la 15..17|        |aten::add 60..70|
    place = {"pid": pid, "tid": tid}
    return trace([
        frame(MAIN, 0, 50, **place), frame(STEP, 5, 40, **place), frame(TORCH, 10, 30, **place),
        host("aten::mm", 12, 28), call(15, 17, 1), kernel(45, 80, 1), host("aten::sum", 42, 48), host("aten::add", 60, 70),
    ])  # fmt: skip


@pytest.mark.parametrize("place", [{"pid": 1, "tid": 1}, {"pid": 0, "tid": 0}])
def test_row_belongs_to_the_innermost_frame_of_the_users_own(place: Mapping[str, int]) -> None:
    """Also where an older build put the frames of the main thread on thread 0 of process 0."""
    raw = stacked(**place)
    links = link(raw)
    assert frame_of(raw, links, "aten::mm") == STEP
    assert frame_of(raw, links, "aten::sum") == MAIN
    assert frame_of(raw, links, "aten::add") is None


def test_device_work_belongs_to_the_line_that_launched_it_not_to_the_one_it_ran_beside() -> None:
    raw = stacked()
    assert frame_of(raw, link(raw), "k") == STEP


def test_frames_of_two_unknown_threads_are_not_given_to_anyone() -> None:
    raw = trace(
        [frame(MAIN, 0, 50, pid=0, tid=0), frame(STEP, 0, 50, pid=0, tid=3), host("aten::mm", 12, 28)]
    )
    assert frame_of(raw, link(raw), "aten::mm") is None


def test_frames_of_another_working_thread_stay_there() -> None:
    raw = trace([frame(STEP, 0, 50, tid=2), host("aten::relu", 5, 9, tid=2), host("aten::mm", 12, 28)])
    links = link(raw)
    assert frame_of(raw, links, "aten::mm") is None
    assert frame_of(raw, links, "aten::relu") == STEP


@pytest.mark.parametrize(
    "name",
    [
        TORCH, "<built-in method run_backward of torch._C._EngineBase object>", "nn.Module: Linear_0",
        "/opt/conda/lib/python3.11/site-packages/transformers/trainer.py(3): train", "threading.py(973): run",
        "contextlib.py(79): inner", "torch/nn/modules/module.py(1): _call_impl", "runpy.py(86): _run_code",
        "C:\\Python\\lib\\site-packages\\torch\\optim\\adam.py(1): step", "/usr/lib/python3.11/ast.py(33): parse",
    ],
)  # fmt: skip
def test_frame_of_the_machinery_is_nobodys_own_line(name: str) -> None:
    raw = trace([frame(STEP, 0, 50), frame(name, 5, 40), host("aten::mm", 12, 28)])
    assert frame_of(raw, link(raw), "aten::mm") == STEP


@pytest.mark.parametrize(
    "name",
    ["/home/me/torch_models/net.py(5): forward", "src/threading_model.py(1): go", "a/b/main.py(1): <module>"],
)
def test_frame_that_only_looks_like_the_machinery_is_the_users(name: str) -> None:
    raw = trace([frame(STEP, 0, 50), frame(name, 5, 40), host("aten::mm", 12, 28)])
    assert frame_of(raw, link(raw), "aten::mm") == name


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("/a/b/c/train.py(12): step", "b/c/train.py(12): step"),
        ("train.py(12): step", "train.py(12): step"),
        ("C:\\me\\code\\net.py(5): forward", "me/code/net.py(5): forward"),
        ("/x/y/z/w.py(1): go(a/b)", "y/z/w.py(1): go(a/b)"),
        ("no line at all", "no line at all"),
    ],
)
def test_label_of_a_line_keeps_two_folders_and_the_function(name: str, label: str) -> None:
    assert frame_label(name) == label


# --- modules -----------------------------------------------------------------------------------


def test_module_frames_name_the_innermost_module_and_beat_annotations() -> None:
    raw = trace([
        frame("nn.Module: Net_0", 0, 50), frame("nn.Module: Linear_3", 10, 30),
        host("mine", 0, 60, cat="user_annotation"), host("aten::mm", 12, 28), call(15, 17, 1), kernel(45, 80, 1),
        host("aten::sum", 32, 38), host("aten::add", 52, 55),
    ])  # fmt: skip
    links = link(raw)
    assert links.module_source == "nn.Module frames"
    found = {name: module_of(raw, links, name) for name in ("aten::mm", "k", "aten::sum", "aten::add")}
    assert found == {"aten::mm": "Linear_3", "k": "Linear_3", "aten::sum": "Net_0", "aten::add": None}
    assert set(links.module_names) == {"Linear_3", "Net_0"}


def test_module_hierarchy_of_an_operator_is_its_module_and_beats_annotations() -> None:
    raw = trace(
        [
            host("mine", 0, 60, cat="user_annotation"),
            host("aten::mm", 12, 28),
            call(15, 17, 1),
            kernel(45, 80, 1),
        ]
    )
    module = np.full(len(raw.events), -1, np.int32)
    module[row_of(raw, "aten::mm")] = module[row_of(raw, "cudaLaunchKernel")] = 0
    raw = replace(
        raw, events=replace(raw.events, module=module, modules=("TOP(Net)::forward.fc(Linear)::forward",))
    )
    links = link(raw)
    assert links.module_source == "Module Hierarchy"
    assert (
        module_of(raw, links, "aten::mm")
        == module_of(raw, links, "k")
        == "TOP(Net)::forward.fc(Linear)::forward"
    )
    assert module_of(raw, links, "mine") is None


def test_annotations_of_the_users_own_stand_in_for_modules() -> None:
    raw = trace([
        host("ProfilerStep#1", 0, 90, cat="user_annotation"), host("forward", 0, 40, cat="user_annotation"),
        host("block 1", 10, 30, cat="user_annotation"), host("aten::mm", 12, 28), call(15, 17, 1), kernel(45, 80, 1),
        host("aten::sum", 32, 38), host("Optimizer.step#SGD.step", 50, 60, cat="user_annotation"),
        host("aten::add_", 52, 55),
    ])  # fmt: skip
    links = link(raw)
    assert links.module_source == "annotations"
    assert set(links.module_names) == {"block 1", "forward"}
    found = {name: module_of(raw, links, name) for name in ("aten::mm", "k", "aten::sum", "aten::add_")}
    assert found == {"aten::mm": "block 1", "k": "block 1", "aten::sum": "forward", "aten::add_": None}


@pytest.mark.parametrize(
    "name",
    [
        "ProfilerStep#3", "Optimizer.zero_grad#SGD.zero_grad", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "PyTorch Profiler (0)", "nccl:all_reduce", "gloo:broadcast", "DistributedDataParallel.forward",
        "## Call CompiledFxGraph abc ##", "Torch-Compiled Region: 0/0",
    ],
)  # fmt: skip
def test_annotation_of_a_library_is_no_module(name: str) -> None:
    raw = trace([host(name, 0, 40, cat="user_annotation"), host("aten::mm", 12, 28)])
    links = link(raw)
    assert (links.module_names, links.module_source) == ((), "")
    assert (links.module == -1).all()


def test_trace_with_nothing_recorded_has_no_lines_and_no_modules() -> None:
    raw = trace([host("aten::mm", 12, 28), call(15, 17, 1), kernel(45, 80, 1)])
    links = link(raw)
    assert (links.frame == -1).all()
    assert links.module_names == ()


def test_frames_of_another_thread_hold_nothing_of_the_busiest_one() -> None:
    """A progress bar's thread waits all the while, and runs no operators: it is not what called them."""
    raw = trace([frame("bar.py(60): run", 0, 90, tid=9), frame(MAIN, 0, 50), host("aten::mm", 12, 28)])
    links = link(raw)
    assert frame_of(raw, links, "aten::mm") == MAIN
    raw = trace([frame("bar.py(60): run", 0, 90, tid=9), host("aten::mm", 12, 28)])
    assert frame_of(raw, link(raw), "aten::mm") is None
