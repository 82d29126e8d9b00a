"""What evidence a trace has: present, missing and not applicable are three different outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses import evidence
from stepcrit.analyses.evidence import CHECKS, Check, State
from stepcrit.link.linker import link
from stepcrit.link.steps import find_steps
from stepcrit.session import load
from tests.builders import trace

Event = dict[str, Any]
FILES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))
DEVICE, LAUNCHES, SYNC, OPS, MARKS, LINES, MODULES, COLLECTIVES, CLOCK, NESTING = (
    "E101", "E102", "E103", "E104", "E105", "E107", "E108", "E109", "E111", "E112",
)  # fmt: skip


def event(cat: str, name: str, span: tuple[int, int], place: tuple[int, int] = (1, 1), **args: Any) -> Event:
    pid, tid = place
    return {
        "cat": cat,
        "name": name,
        "ts": span[0],
        "dur": span[1] - span[0],
        "pid": pid,
        "tid": tid,
        "args": args,
    }


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
        (COLLECTIVES, [OP, kernel("nccl", 5, 1, **COLLECTIVE), kernel("nccl", 15, 2)], State.MISSING),
        (CLOCK, [OP, call(1, 1), kernel("k", 5, 1)], State.OK),
        (CLOCK, [OP, call(8, 1), kernel("k", 5, 1)], State.WARN),
        (CLOCK, [OP], State.NOT_APPLICABLE),
        (NESTING, [OP, event("cpu_op", "in", (3, 9))], State.OK),
        (NESTING, [OP, event("cpu_op", "across", (30, 50))], State.WARN),
    ],
)
def test_outcome_is_present_missing_or_not_applicable(code: str, chrome: list[Event], state: State) -> None:
    assert checks(*chrome)[code].state == state


def test_what_was_seen_is_counted_on_the_trace() -> None:
    found = checks(OP, call(1, 1), kernel("k", 5, 1), kernel("nccl", 15, 2, 20))
    assert found[DEVICE].seen.startswith("2 ")
    assert found[LAUNCHES].seen == "1 of 2 activities have their launch call"
    assert found[SYNC].seen == "0 cuda_sync records, 2 device queues"
    assert found[COLLECTIVES].seen.startswith("0 of 1 ")


def test_clock_that_breaks_causality_says_how_often_and_by_how_much() -> None:
    found = checks(OP, call(8, 1), kernel("k", 5, 1), call(21, 2), kernel("k", 20, 2))
    assert found[CLOCK].seen == "2 activities start before their launch, by up to 3000 ns"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_check_speaks_once_and_missing_evidence_says_what_is_lost_and_how_to_get_it(path: Path) -> None:
    made = load(path)
    found = evidence.analyze(made.raw, made.links, made.steps)
    assert len({one.code for one in found}) == len(found) == len(CHECKS)
    for one in found:
        assert one.seen
        if one.state in (State.MISSING, State.WARN):
            assert one.lost
            assert one.fix
