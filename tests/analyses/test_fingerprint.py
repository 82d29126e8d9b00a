"""Two recordings are compared by what must be equal; what one side does not tell is neither equal nor different."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stepcrit.analyses.fingerprint import (
    Difference,
    Fingerprint,
    Level,
    changes_between,
    differences,
    fingerprint,
    work_changes,
)
from stepcrit.link.workload import NEVER, Times, WorkKey
from stepcrit.model.slim import SlimMark
from stepcrit.model.trace import Device
from stepcrit.session import Options, Trace
from tests.builders import Event, event, trace

HOST, QUEUE = (1, 1), (0, 7)
SLIM = SlimMark(
    stacks=False, anonymous=False, steps_of=4, first_step="", last_step="", first_ns=0, dialect=()
)
MM = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}


def _chrome(extra: list[Event] | None = None, **args: Any) -> list[Event]:
    """Step 0, then three steps of one product that launches one kernel."""
    rows = []
    for at in range(0, 400, 100):
        rows += [
            event("user_annotation", f"ProfilerStep#{at // 100}", (at, at + 100), HOST),
            event("cpu_op", "aten::mm", (at + 10, at + 30), HOST, **(args or MM)),
            event("cuda_runtime", "cudaLaunchKernel", (at + 15, at + 20), HOST, correlation=at + 1),
            event("kernel", "gemm", (at + 40, at + 90), QUEUE, correlation=at + 1, stream=7),
        ]
    return rows + (extra or [])


def _taken(chrome: list[Event] | None = None, **meta: Any) -> Fingerprint:
    meta = {
        "devices": (Device(0, "H100"), Device(1, "H100")),
        "world_size": 8,
        "rank": 0,
        "backend": "nccl",
        **meta,
    }
    made = Trace(trace(chrome or _chrome(), **meta), Options())
    return fingerprint(made.raw, made.links, made.steps)


def _codes(found: tuple[Difference, ...]) -> list[str]:
    return [one.code if one.is_known else f"{one.code}?" for one in found]


def _words(one: Difference) -> str:
    return one.what.template.format(*(value.raw for value in one.what.values))


def test_a_recording_is_like_itself() -> None:
    assert differences(_taken(), _taken()) == ()
    assert _taken().flops == 2 * 8 * 16 * 4
    assert _taken().step_count == 3


@pytest.mark.parametrize(
    ("meta", "code", "level"),
    [
        ({"options": frozenset({"with_stack"})}, "capture.with_stack", Level.CAPTURE),
        ({"options": frozenset({"profile_memory"})}, "capture.profile_memory", Level.CAPTURE),
        ({"devices": (Device(0, "A100"), Device(1, "A100"))}, "devices", Level.CONFIGURATION),
        ({"world_size": 4}, "world_size", Level.CONFIGURATION),
        ({"rank": 1}, "rank", Level.CONFIGURATION),
        ({"backend": "gloo"}, "backend", Level.CONFIGURATION),
        ({"versions": {"cuda_runtime_version": "13000"}}, "version.cuda_runtime_version", Level.NOTE),
        ({"slim": SLIM, "options": frozenset({"record_shapes"})}, "slim", Level.NOTE),
        ({"world_size": -1}, "world_size?", Level.CONFIGURATION),
        ({"devices": ()}, "devices?", Level.CONFIGURATION),
        ({"backend": ""}, "backend?", Level.CONFIGURATION),
    ],
)
def test_each_thing_that_must_be_equal_is_told_from_both_sides(
    meta: dict[str, Any], code: str, level: Level
) -> None:
    base = _taken(versions={"cuda_runtime_version": "12000"})
    (there,) = [
        d
        for d in differences(base, _taken(**{"versions": {"cuda_runtime_version": "12000"}, **meta}))
        if "?" in code or d.is_known
    ]
    (back,) = [
        d
        for d in differences(_taken(**{"versions": {"cuda_runtime_version": "12000"}, **meta}), base)
        if "?" in code or d.is_known
    ]
    assert _codes((there,)) == _codes((back,)) == [code]
    assert there.level == back.level == level
    mine, other = _words(there).split(": ")[1].split(" in base, ")
    assert _words(back).split(": ")[1] == f"{other.removesuffix(' in new')} in base, {mine} in new"


def test_a_trace_that_was_slimmed_may_have_lost_its_stacks() -> None:
    stacks = frozenset({"with_stack"})
    assert _codes(differences(_taken(options=stacks), _taken(slim=SLIM))) == [
        "capture.with_stack?", "capture.with_modules?", "slim",
    ]  # fmt: skip
    assert _codes(differences(_taken(options=stacks), _taken(slim=SLIM, options=stacks))) == ["slim"]
    # A writer that tells other options would have told this one; and where stacks were kept, none were there.
    other = _taken(slim=SLIM, options=frozenset({"with_flops"}))
    assert "capture.with_stack" in _codes(differences(_taken(options=stacks), other))
    kept = _taken(slim=replace(SLIM, stacks=True))
    assert _codes(differences(_taken(options=stacks), kept)) == ["capture.with_stack", "slim"]
    assert _codes(differences(_taken(slim=SLIM), kept)) == [
        "capture.with_stack?",
        "capture.with_modules?",
        "slim",
    ]


def test_shapes_that_one_side_has_not_are_no_difference_of_work() -> None:
    bare = _taken(_chrome(**{"Sequence number": 3}))
    assert _codes(differences(_taken(), bare)) == [
        "capture.record_shapes", "product_dtypes?", "work.shapes?", "work.dtypes?",
    ]  # fmt: skip
    assert work_changes(_taken(), bare) == ()
    assert bare.flops is None


def test_another_type_of_products_is_another_configuration() -> None:
    half = _taken(_chrome(**{**MM, "Input type": ["c10::Half", "c10::Half"]}))
    assert _codes(differences(_taken(), half)) == ["product_dtypes", "work.counts"]
    # A side without any product has other work, not other types.
    none = _taken([{**row, "name": "aten::add"} if row["name"] == "aten::mm" else row for row in _chrome()])
    assert _codes(differences(_taken(), none)) == ["work.counts"]


def test_work_that_is_more_or_fewer_is_told_by_key() -> None:
    more = _taken(
        _chrome([event("cpu_op", "aten::add", (at + 92, at + 95), HOST, **MM) for at in (100, 200, 300)])
    )
    (change,) = work_changes(_taken(), more)
    assert (change.key.name, change.base, change.new) == ("aten::add", NEVER, Times(1, 1, 3))
    (back,) = work_changes(more, _taken())
    assert (back.base, back.new) == (change.new, change.base)
    once = _taken(_chrome([event("cpu_op", "aten::add", (192, 195), HOST, **MM)]))
    assert once.varies == 1
    assert work_changes(_taken(), once) == ()  # some steps of it do the same


def test_ranges_that_do_not_meet_differ() -> None:
    key = WorkKey("op", "aten::mm")
    assert changes_between({key: Times(1, 2, 3)}, {key: Times(2, 3, 5)}) == ()
    assert len(changes_between({key: Times(1, 2, 3)}, {key: Times(3, 3, 6)})) == 1


def test_fewer_steps_are_a_note() -> None:
    base = _taken()
    assert _codes(differences(base, replace(base, step_count=2))) == ["steps"]
