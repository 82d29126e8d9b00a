"""What evidence a trace has: present, missing and not applicable are three different outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stepcrit.analyses import evidence
from stepcrit.analyses.evidence import CHECKS, Check, State
from stepcrit.link.linker import link
from stepcrit.link.presence import Platform, platform_of
from stepcrit.link.steps import find_steps
from stepcrit.model.events import EventKind
from stepcrit.model.section import Unit
from stepcrit.model.trace import Device
from stepcrit.session import load
from tests.builders import Event, event, trace

FILES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))
DEVICE, LAUNCHES, SYNC, OPS, MARKS, LINES, MODULES, COLLECTIVES, CLOCK, NESTING, COST = (
    "E101", "E102", "E103", "E104", "E105", "E107", "E108", "E109", "E111", "E112", "E114",
)  # fmt: skip


def kernel(name: str, start: int, corr: int, stream: int = 7, **args: Any) -> Event:
    return event("kernel", name, (start, start + 5), (0, stream), correlation=corr, stream=stream, **args)


def call(start: int, corr: int) -> Event:
    return event("cuda_runtime", "cudaLaunchKernel", (start, start + 1), correlation=corr)


def checks(*chrome: Event) -> dict[str, Check]:
    raw = trace(chrome)
    links = link(raw)
    return {one.code: one for one in evidence.analyze(raw, links, find_steps(raw.events, links))}


OP = event("cpu_op", "aten::mm", (0, 40))
COLLECTIVE = {"Collective name": "allreduce"}


@pytest.mark.parametrize(
    ("code", "chrome", "state"),
    [
        (DEVICE, [OP, call(1, 1), kernel("k", 5, 1)], State.OK),
        (DEVICE, [OP, call(1, 1)], State.MISSING),  # calls, but nothing that they launched
        (DEVICE, [OP], State.NOT_APPLICABLE),  # a CPU run
        (LAUNCHES, [OP, call(1, 1), kernel("k", 5, 1)], State.OK),
        (LAUNCHES, [OP, call(1, 1), kernel("k", 5, 1), kernel("k", 15, 2)], State.WARN),
        (LAUNCHES, [OP, kernel("k", 5, 1)], State.MISSING),
        (LAUNCHES, [OP], State.NOT_APPLICABLE),
        (SYNC, [OP, kernel("k", 5, 1)], State.NOT_APPLICABLE),  # one queue waits for no other
        (SYNC, [OP, kernel("k", 5, 1), kernel("k", 5, 2, 20)], State.MISSING),
        (SYNC, [OP, kernel("k", 5, 1), event("cuda_sync", "Stream Sync", (6, 7), (0, 7))], State.OK),
        (SYNC, [OP], State.NOT_APPLICABLE),
        (OPS, [OP], State.OK),
        (OPS, [call(1, 1), kernel("k", 5, 1)], State.MISSING),
        (MARKS, [OP, event("user_annotation", "ProfilerStep#3", (0, 40))], State.OK),
        (MARKS, [OP], State.MISSING),
        (
            MARKS,
            [OP, *(event("user_annotation", "Optimizer.step#A.step", (t, t + 2)) for t in (5, 15))],
            State.WARN,
        ),
        (LINES, [OP], State.MISSING),
        (LINES, [OP, event("python_function", "train.py(3): step", (0, 40))], State.OK),
        (MODULES, [OP], State.MISSING),
        (MODULES, [OP, event("user_annotation", "forward", (0, 40))], State.OK),
        (COLLECTIVES, [OP, kernel("k", 5, 1)], State.NOT_APPLICABLE),
        (COLLECTIVES, [OP, kernel("nccl", 5, 1, **COLLECTIVE)], State.OK),
        (COLLECTIVES, [OP, kernel("nccl", 5, 1, **COLLECTIVE), kernel("nccl", 15, 2)], State.WARN),
        (COLLECTIVES, [OP, kernel("nccl", 5, 1), kernel("nccl", 15, 2)], State.MISSING),
        (COLLECTIVES, [OP, event("cpu_op", "gloo:all_reduce", (1, 9))], State.MISSING),  # on the host
        (COLLECTIVES, [OP, event("cpu_op", "gloo:all_reduce", (1, 9), **COLLECTIVE)], State.OK),
        (DEVICE, [OP, event("cpu_op", "nccl:all_reduce", (1, 9))], State.MISSING),  # recorded without it
        (DEVICE, [OP, event("cuda_runtime", "cudaGetDeviceCount", (1, 2))], State.NOT_APPLICABLE),
        (CLOCK, [OP, call(1, 1), kernel("k", 5, 1)], State.OK),
        (CLOCK, [OP, call(8, 1), kernel("k", 5, 1)], State.WARN),
        (CLOCK, [OP], State.NOT_APPLICABLE),
        (NESTING, [OP, event("cpu_op", "in", (3, 9))], State.OK),
        (NESTING, [OP, event("cpu_op", "across", (30, 50))], State.WARN),
    ],
)
def test_outcome_is_present_missing_or_not_applicable(code: str, chrome: list[Event], state: State) -> None:
    assert checks(*chrome)[code].state == state


def seen(check: Check) -> tuple[str, list[Any]]:
    return check.seen.template, [value.raw for value in check.seen.values]


def test_what_was_seen_is_counted_on_the_trace() -> None:
    found = checks(OP, call(1, 1), kernel("k", 5, 1), kernel("nccl", 15, 2, 20))
    assert seen(found[DEVICE]) == ("{} kernels, copies and memsets", [2])
    assert seen(found[LAUNCHES]) == ("{} of {} activities have their launch call", [1, 2])
    assert seen(found[SYNC]) == ("{} cuda_sync records, {} device queues", [0, 2])
    assert seen(found[COLLECTIVES])[1] == [0, 1]


def test_what_cannot_be_there_is_not_counted_as_zero() -> None:
    found = checks(OP)
    assert seen(found[DEVICE]) == seen(found[LAUNCHES]) == ("no device activities", [])
    assert seen(found[COLLECTIVES]) == ("no communication activities", [])


def test_clock_that_breaks_causality_says_how_often_and_by_how_much() -> None:
    found = checks(OP, call(8, 1), kernel("k", 5, 1), call(21, 2), kernel("k", 20, 2))
    words, numbers = seen(found[CLOCK])
    assert words == "{} activities start before their launch, by up to {}"
    assert numbers == [2, 3000]
    assert found[CLOCK].seen.values[1].unit == Unit.NS


def test_collectives_on_the_host_are_counted_once() -> None:
    around = [event("cpu_op", name, (50, 60)) for name in ("c10d::allreduce_", "record_param_comms")]
    ranges = [event("user_annotation", "gloo:all_reduce", (at, at + 5), (1, 2)) for at in (52, 62)]
    assert seen(checks(OP, *around, *ranges)[COLLECTIVES])[1] == [0, 2]
    assert seen(checks(OP, *around)[COLLECTIVES])[1] == [0, 1]


@pytest.mark.parametrize(
    ("unnamed", "fix"),
    [
        ([kernel("nccl", 15, 2)], "launched outside the recording"),
        ([call(11, 2), kernel("nccl", 15, 2)], "none known"),
    ],
)
def test_some_unnamed_collectives_are_not_blamed_on_pytorch(unnamed: list[Event], fix: str) -> None:
    assert fix in checks(OP, call(1, 1), kernel("nccl", 5, 1, **COLLECTIVE), *unnamed)[COLLECTIVES].fix


def test_a_listed_device_alone_is_asked_about() -> None:
    raw = trace([OP], devices=(Device(0, "NVIDIA H100"),))
    links = link(raw)
    found = {one.code: one for one in evidence.analyze(raw, links, find_steps(raw.events, links))}
    assert (found[DEVICE].state, found[DEVICE].seen.values[0].raw) == (State.WARN, 1)


def overhead(start: int, end: int) -> Event:
    return event("overhead", "Buffer Flush", (start, end))


@pytest.mark.parametrize(
    ("spans", "ns", "state"),
    [
        ([(10, 15)], 5000, State.OK),  # 5 of 100: at the limit
        ([(10, 16)], 6000, State.WARN),
        ([(10, 15), (12, 15)], 5000, State.OK),  # two threads at once: no more than the time they cover
        ([(95, 150)], 5000, State.OK),  # what lies outside the step is none of its cost
    ],
)
def test_the_cost_of_profiling_is_a_union_within_the_step(
    spans: list[tuple[int, int]], ns: int, state: State
) -> None:
    raw = trace([event("cpu_op", "aten::mm", (0, 100)), *(overhead(*span) for span in spans)])
    kind = raw.events.kind.copy()
    kind[raw.events.is_kind(EventKind.OTHER)] = EventKind.OVERHEAD
    raw = replace(raw, events=replace(raw.events, kind=kind))
    links = link(raw)
    found = {one.code: one for one in evidence.analyze(raw, links, find_steps(raw.events, links))}
    assert found[COST].state == state
    assert seen(found[COST])[1] == [len(spans), ns, ns / 100_000]


@pytest.mark.parametrize(
    ("chrome", "devices", "platform"),
    [
        ([OP], (), Platform.CPU),
        ([OP], ("NVIDIA H100",), Platform.CUDA),  # recorded on the host only, on a machine that has a device
        ([OP], ("AMD Instinct MI300X",), Platform.ROCM),
        ([OP, call(1, 1)], (), Platform.CUDA),
        ([OP, event("cuda_driver", "cuLaunchKernel", (1, 2))], (), Platform.CUDA),
        ([OP, event("cuda_runtime", "hipLaunchKernel", (1, 2))], ("NVIDIA H100",), Platform.ROCM),
        ([OP, kernel("k", 5, 1)], (), Platform.OTHER),
        ([OP, event("cuda_runtime", "customCall", (1, 2))], (), Platform.OTHER),
    ],
)
def test_whose_device_it_is_is_told_by_calls_before_listed_devices(
    chrome: list[Event], devices: tuple[str, ...], platform: Platform
) -> None:
    listed = tuple(Device(i, name) for i, name in enumerate(devices))
    assert platform_of(trace(chrome, devices=listed)) == platform


def test_sync_records_are_advised_where_a_profiler_knows_them() -> None:
    queues = [OP, kernel("k", 5, 1), kernel("k", 5, 2, 20)]
    assert "enable_cuda_sync_events" in checks(*queues, call(1, 1))[SYNC].fix
    assert (
        "enable_cuda_sync_events" not in checks(*queues, event("cuda_runtime", "hipInit", (1, 2)))[SYNC].fix
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_check_speaks_once_and_missing_evidence_says_what_is_lost_and_how_to_get_it(path: Path) -> None:
    made = load(path)
    found = evidence.analyze(made.raw, made.links, made.steps)
    assert len({one.code for one in found}) == len(found) == len(CHECKS)
    for one in found:
        assert one.seen.template.count("{}") == len(one.seen.values)
        amiss = one.state in (State.MISSING, State.WARN)
        assert (bool(one.lost), bool(one.fix)) == (amiss, amiss)
