"""I9, I10: when a trace was recorded, how fast its clock ran and what its ids are called decide nothing.

I9, scaling: everything that is measured scales. What compares a time with a constant does not, and need not: a gap
of more than 20 µs is unexplained or (timing rule) looked at for a cause within 5 µs, a start may precede its cause by
1 µs, a wait call means work up to 50 µs before it, a long launch call takes 20 µs or more and returns within 10 µs, a
usual delay counts up to 20 µs, a batch that comes within 2 ms may have been ready. Savings are halves rounded to whole
ns, medians of two values too. The traces here are ones in which no constant comes into play.

I10: pids, tids, streams and devices may be called anything. Correlation and External ids are numbered as calls and
operators begin, and that order is evidence (it tells a record after its wait, and which of two ranges of the same
times is the outer one): they may be renumbered as long as they ascend. `device` on the host is one of the ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.graph.drag import UNNEEDED, slack
from stepcrit.graph.path import critical_path
from stepcrit.ingest.times import MAX_NS
from stepcrit.model.section import Document
from tests.properties.crowded import crowded
from tests.properties.schedules import PROPERTY as FULL
from tests.properties.schedules import Built, Schedule, schedules
from tests.variants import (
    Renaming,
    Written,
    answers,
    renamed,
    scaled,
    shifted,
    shown,
    to_bytes,
    understood,
    written,
)

PROPERTY = settings(FULL, max_examples=20)
FIXTURES = Path(__file__).parents[2] / "fixtures"
SHIFTED = ("simulated/two_streams_sync_records", "recorded/dataloader_after", "recorded/accumulation_stacks")
SCALE_FREE = (
    "simulated/device_bound",
    "simulated/host_bound",
    "simulated/item_sync",
    "simulated/full_queue_16",
    "simulated/graph_step",
    "simulated/two_streams_sync_records",
    "recorded/accumulation_stacks",
)
ROUNDED = re.compile(r"saving|median_ns|launch_to_start|resolution_ns|verdict")
"""Means and halves, rounded to whole ns; what the clock's own unit is; sentences, which hold such values."""


@cache
def fixture(name: str) -> Written:
    return written(FIXTURES / f"{name}.json.gz")


def told(trace: Written, formats: tuple[str, ...] = ("text", "json")) -> dict[str, bytes]:
    return shown(answers(understood(to_bytes(trace))), formats)


@cache
def told_of(name: str) -> dict[str, bytes]:
    return told(fixture(name))


# --- I9: time shift ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize("by_ns", [-(10**15), 2**53 + 1, 2**53 * 100])
def test_trace_of_another_time_gets_the_same_answers(name: str, by_ns: int) -> None:
    """Before time 0, beyond what a float64 holds in ns, and with the digits of an epoch in 10 ns."""
    assert told(shifted(fixture(name), by_ns)) == told_of(name)


@pytest.mark.parametrize("base_ns", [0, 1, 1_753_000_000_123_456_789])
def test_base_of_the_times_changes_nothing_but_when_it_was(base_ns: int) -> None:
    trace = fixture(SHIFTED[0])
    assert "baseTimeNanoseconds" in trace.header
    other = replace(trace, header={**trace.header, "baseTimeNanoseconds": base_ns})
    assert told(other) == told_of(SHIFTED[0])
    before, after = (understood(to_bytes(one)).meta.origin_ns for one in (trace, other))
    assert after - before == base_ns - trace.header["baseTimeNanoseconds"]


def test_times_that_no_int64_holds_are_refused_in_words_not_wrapped() -> None:
    """2**53 µs as ns is more than a trace may say (146 years): nothing of it is used, and the answer says so."""
    late = understood(to_bytes(shifted(fixture(SHIFTED[0]), 2**53 * 1000)))
    assert MAX_NS < 2**53 * 1000
    assert late.meta.dropped["time is out of range"] > 0
    assert not len(late.raw.events)


@PROPERTY
@given(crowded(), st.integers(-(2**60) // 1000 + 2**20, 2**61 // 1000))
def test_any_trace_of_another_time_gets_the_same_answers(trace: Written, by_us: int) -> None:
    """By whole microseconds: the clock of a trace in whole microseconds is part of the answer."""
    assert without_epoch(answers(understood(to_bytes(shifted(trace, by_us * 1000))))) == without_epoch(
        answers(understood(to_bytes(trace)))
    )


def without_epoch(found: Mapping[str, Document | str]) -> dict[str, Any]:
    """Data of answers, but for what dates the writer (times of an epoch date it) and who checked it (doctor)."""
    data = {verb: one.data if isinstance(one, Document) else one for verb, one in found.items()}
    del data["doctor"]
    return {
        verb: {**one, "trace": {**one["trace"], "dialect": None}} if isinstance(one, dict) and "trace" in one else one
        for verb, one in data.items()
    }  # fmt: skip


# --- I9: time scale ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("factor", [2, 3])
def test_times_that_are_so_many_times_longer_are_so_in_every_answer(name: str, factor: int) -> None:
    verbs = ("analyze", "critical")
    one, other = (
        answers(understood(to_bytes(t)), verbs) for t in (fixture(name), scaled(fixture(name), factor))
    )
    seen = 0
    for verb in verbs:
        before, after = one[verb], other[verb]
        assert isinstance(before, Document)
        assert isinstance(after, Document)
        old, new = dict(leaves(before.data, verb)), dict(leaves(after.data, verb))
        assert old.keys() == new.keys()
        for path, value in old.items():
            if ROUNDED.search(path):
                continue
            is_time = "_ns" in path and isinstance(value, int)
            assert new[path] == (value * factor if is_time else value), path
            seen += is_time
    assert seen > 100


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every single value with its path; shares to twelve digits."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{i}]")
    else:
        yield path, round(value, 12) if isinstance(value, float) else value


@settings(FULL, max_examples=150)
@given(schedules(), st.integers(1, 10**6))
def test_path_slack_and_drag_scale_with_the_times(schedule: Schedule, factor: int) -> None:
    slow = replace(
        schedule,
        t0=schedule.t0 * factor,
        nodes=tuple(replace(n, start=n.start * factor, dur=n.dur * factor) for n in schedule.nodes),
        floors=tuple((kind, ns * factor) for kind, ns in schedule.floors),
    )
    one, other = Built(schedule), Built(slow)
    a, b = (critical_path(built.graph, built.arrivals, built.sinks) for built in (one, other))
    # Zero-length nodes of one instant may be numbered in another order only if their times say so: they do not.
    assert (a.kind.tolist(), a.node.tolist(), a.path_count, a.ties) == (b.kind.tolist(), b.node.tolist(), b.path_count, b.ties)  # fmt: skip
    assert (a.start_ns * factor).tolist() == b.start_ns.tolist()
    assert (a.end_ns * factor).tolist() == b.end_ns.tolist()
    assert slack_of(one, factor) == slack_of(other, 1)


def slack_of(built: Built, factor: int) -> list[int]:
    found = slack(built.graph, built.lags, built.boundary).total_ns.tolist()
    return [ns if ns == UNNEEDED else ns * factor for ns in found]


# --- I10: names -------------------------------------------------------------------------------

THREADS, STREAMS, DEVICES = 800_000_000, 900_000_000, 700_000_000
RENAMINGS = {
    "threads": Renaming(thread=lambda pid, tid: (pid + 11, THREADS - tid)),
    "streams": Renaming(stream=lambda stream: STREAMS - stream if stream < 1000 else stream),
    "devices": Renaming(device=lambda device: DEVICES - device),
    "calls": Renaming(correlation=lambda number: 3 * number + 5),
    "operators": Renaming(external_id=lambda number: 7 * number + 1),
    "calls of 64 bits": Renaming(correlation=lambda number: number + 2**33),
    "operators of 64 bits": Renaming(external_id=lambda number: number + 2**33),
}


USED = {
    "simulated/ddp_tail.rank1": RENAMINGS.keys(),
    "simulated/two_streams_sync_records": RENAMINGS.keys(),
    "simulated/grad_accumulation": RENAMINGS.keys(),
    "recorded/ddp_gloo_rank0": {"threads", "operators", "operators of 64 bits"},  # no device
}


@pytest.mark.parametrize("what", RENAMINGS)
@pytest.mark.parametrize("name", USED)
def test_other_ids_change_nothing_but_what_things_are_called(name: str, what: str) -> None:
    """Where a label is shown it is put back; all that is left must be the same to the byte."""
    trace = fixture(name)
    other = renamed(trace, RENAMINGS[what])
    assert (other.events != trace.events) == (what in USED[name])
    after = told(other, ("json",))
    before = {key: text for key, text in told_of(name).items() if key.endswith("json")}
    assert {key: with_old_labels(text) for key, text in after.items()} == before


def with_old_labels(text: bytes) -> bytes:
    """New threads, streams and devices under their old numbers."""
    text = re.sub(rb"thread (79\d{7}|8000\d{5})", lambda m: b"thread %d" % (THREADS - int(m[1])), text)
    text = re.sub(rb"stream (8999\d{5}|900000000)", lambda m: b"stream %d" % (STREAMS - int(m[1])), text)
    return re.sub(rb"\b(6999999\d\d|700000000)\b", lambda m: b"%d" % (DEVICES - int(m[1])), text)


@PROPERTY
@given(crowded(), st.integers(1, 1000) | st.integers(2**26, 2**34))
def test_ascending_ids_may_have_any_gaps(trace: Written, gap: int) -> None:
    names = Renaming(correlation=lambda n: gap * n + gap, external_id=lambda n: gap * n + 1)
    assert told(renamed(trace, names)) == told(trace)
