"""A call outside every operator of its thread belongs to the one whose id it carries, if the times agree."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from stepcrit.link.linker import link
from stepcrit.model.trace import RawTrace
from tests.builders import Event, event, trace


def drawn(*chrome: Event) -> RawTrace:
    """A trace whose external ids are those of the arguments."""
    made = trace(chrome)
    ids = [chrome[place]["args"].get("External id", -1) for place in made.events.order.tolist()]
    return replace(made, events=replace(made.events, external_id=np.array(ids, np.int64)))


def operator(made: RawTrace) -> str:
    """The operator of the kernel."""
    (row,) = np.flatnonzero([made.events.name_of(i) == "k" for i in range(len(made.events))])
    found = int(link(made).op[row])
    return made.events.name_of(found) if found >= 0 else ""


OP = event("cpu_op", "op", (100, 140), **{"External id": 5})
KERNEL = event("kernel", "k", (200, 210), (0, 7), correlation=1, stream=7)


def call(at: float, *, tid: int = 2, pid: int = 1, number: int = 5) -> Event:
    return event(
        "cuda_runtime", "cudaLaunchKernel", (at, at + 5), (pid, tid), correlation=1, **{"External id": number}
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "whose"),
    [
        (call(110), "op"),  # the same thread under another number
        (call(99), "op"),  # a microsecond outside
        (call(141), "op"),
        (call(98.999), ""),
        (call(141.001), ""),
        (call(110, number=6), ""),
        (call(110, pid=2), ""),  # another process counts for itself
        (call(99, tid=1), "op"),
    ],
)
def test_the_id_counts_within_a_microsecond_of_the_operator_and_in_its_process(
    made: Event, whose: str
) -> None:
    assert operator(drawn(OP, made, KERNEL)) == whose


def test_what_is_around_a_call_on_its_own_thread_counts_first() -> None:
    around = event("cpu_op", "around", (100, 140), (1, 2), **{"External id": 9})
    assert operator(drawn(OP, around, call(110), KERNEL)) == "around"


def test_of_operators_with_one_id_the_latest_that_is_running_is_meant() -> None:
    inner = event("cpu_op", "inner", (105, 120), **{"External id": 5})
    later = event("cpu_op", "later", (150, 160), **{"External id": 5})
    assert operator(drawn(OP, inner, later, call(110), KERNEL)) == "inner"
    assert operator(drawn(OP, inner, later, call(130), KERNEL)) == "op"


def test_the_call_takes_the_module_of_its_operator_too() -> None:
    part = event("user_annotation", "encoder", (90, 150))
    made = drawn(part, OP, call(110), KERNEL)
    links = link(made)
    row = int(np.flatnonzero(made.events.correlation == 1)[-1])
    assert made.events.name_of(row) == "k"
    assert links.module_names[int(links.module[row])] == "encoder"
