"""A call that is removed waits no more; one that only gets shorter still does. Numbers by hand, times in µs."""

from __future__ import annotations

import pytest

from stepcrit.errors import UsageError
from stepcrit.graph.change import Options as How
from stepcrit.graph.change import parse_change
from stepcrit.graph.replay import Saving
from stepcrit.graph.select import select
from stepcrit.graph.selector import parse_selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace
from tests.asking import analyze
from tests.builders import event, trace


def reads_the_loss(*, then: int = 30) -> StepGraph:
    """Launch, copy back and wait for it, synchronize, then `then` of host work and a second launch.

    host  l1 0..2  item 2..62 { memcpy 4..56 (blocked 4..52, return 4)  sync 57..60 }  py 62..92  l2 92..94
    s7    k1 6..50  copy 51..52                                                              k2 98..128
    """
    end = 62 + then
    return Trace(
        trace(
            [
                event("cuda_runtime", "cudaLaunchKernel", (0, 2), correlation=1),
                event("cpu_op", "aten::item", (2, 62)),
                event("cuda_runtime", "cudaMemcpyAsync", (4, 56), correlation=2),
                event("cuda_runtime", "cudaStreamSynchronize", (57, 60)),
                event("cpu_op", "py", (62, end)),
                event("cuda_runtime", "cudaLaunchKernel", (end, end + 2), correlation=3),
                event("kernel", "k1", (6, 50), (0, 7), correlation=1, stream=7),
                event(
                    "gpu_memcpy",
                    "Memcpy DtoH (Device -> Pageable)",
                    (51, 52),
                    (0, 7),
                    correlation=2,
                    stream=7,
                ),
                event("kernel", "k2", (end + 6, end + 36), (0, 7), correlation=3, stream=7),
            ]
        ),
        Options(),
    ).view()


def saving(view: StepGraph, operation: str, text: str, how: How | None = None) -> Saving:
    return analyze(view, [parse_change(operation, text)], how).saving


def test_removed_operator_takes_its_wait_along() -> None:
    """Without item: py 2..32, l2 32..34, k2 behind k1 and 4 after its launch: 50 + gap, not 98.

    join: its gap of 4 stays behind k1 too; edge: k2 starts as k1 ends, for 38 has passed.
    """
    view = reads_the_loss()
    assert view.step.end_ns == 128_000
    gone = saving(view, "remove", "aten::item", How(side="both"))
    assert gone == Saving(128_000 - 84_000, 128_000 - 80_000)


def test_class_of_waits_is_what_the_path_calls_by_that_name_whichever_call_it_is() -> None:
    """The copy's call returns 4 after the copy: that, and the call to synchronize, is the class's time."""
    view = reads_the_loss()
    selection = select(view, parse_selector("class:sync"))
    assert (selection.host_count, selection.total_ns) == (2, 4_000 + 3_000)
    assert int(selection.wait_nodes.sum()) == 1


def test_removed_waits_let_the_host_run_ahead() -> None:
    """Host then: l1 2, item 2 + 1 + 2, py 30, l2 2: submitted at 39; k2 runs behind k1 and the copy."""
    gone = saving(reads_the_loss(), "remove", "class:sync")
    # copy ends 52; join: k2 at 52 + 4, edge: at 52
    assert gone == Saving(128_000 - 86_000, 128_000 - 82_000)


def test_shorter_call_still_waits() -> None:
    view = reads_the_loss()
    assert saving(view, "shrink", "class:sync=0") == Saving(7_000, 7_000)
    assert saving(view, "shrink", "cudaStreamSynchronize=0") == Saving(3_000, 3_000)


def test_operator_made_cheaper_keeps_the_latency_of_its_waits() -> None:
    """The operator is 2 + 1 + 3 + 2 beside the wait and the return of 4; before the copy it has slack."""
    view = reads_the_loss()
    host = How(side="host")
    assert select(view, parse_selector("aten::item"), side="host").total_ns == 8_000
    assert saving(view, "shrink", "aten::item=0", host) == Saving(6_000, 6_000)
    # The call by its own name is meant with all that it takes.
    assert saving(view, "shrink", "cudaMemcpyAsync=0", host) == Saving(4_000, 4_000)


def test_wait_of_another_operator_stays() -> None:
    assert saving(reads_the_loss(), "remove", "py", How(side="host")) == Saving(30_000, 30_000)


def test_class_of_waits_matches_nothing_where_nothing_waits() -> None:
    view = Trace(trace([event("cpu_op", "py", (0, 9))]), Options()).view()
    with pytest.raises(UsageError, match="nothing matches"):
        select(view, parse_selector("class:sync"))


def test_two_removals_each_take_their_own_wait_along() -> None:
    """Two synchronizes, each behind a kernel of its own; without both the host never waits.

    host  l1 0..2  sync 2..54 (k1 4..50, return 4)  l2 54..56  sync 56..108 (k2 58..104)  end 108..118
    """
    view = Trace(
        trace(
            [
                event("cuda_runtime", "cudaLaunchKernel", (0, 2), correlation=1),
                event("cpu_op", "first", (2, 54)),
                event("cuda_runtime", "cudaDeviceSynchronize", (2, 54)),
                event("cuda_runtime", "cudaLaunchKernel", (54, 56), correlation=2),
                event("cpu_op", "second", (56, 108)),
                event("cuda_runtime", "cudaDeviceSynchronize", (56, 108)),
                event("cpu_op", "end", (108, 118)),
                event("kernel", "k1", (4, 50), (0, 7), correlation=1, stream=7),
                event("kernel", "k2", (58, 104), (0, 7), correlation=2, stream=7),
                event("user_annotation", "ProfilerStep#1", (0, 118)),
            ]
        ),
        Options(StepOptions(Boundary.HOST)),
    ).view()
    both = [parse_change("remove", name) for name in ("first", "second")]
    assert analyze(view, both, How(side="both")).predicted_ns == (14_000, 14_000)


def test_call_that_is_much_shorter_submits_no_earlier_than_a_normal_delay_allows() -> None:
    """A call of 100 at a tenth: 90 less, of which at most 20 may lie behind the submission."""
    view = Trace(
        trace(
            [
                event("cpu_op", "op", (0, 110)),
                event("cuda_runtime", "cudaLaunchKernel", (5, 105), correlation=1),
                event("kernel", "k", (108, 150), (0, 7), correlation=1, stream=7),
            ]
        ),
        Options(),
    ).view()
    assert saving(view, "shrink", "cudaLaunchKernel=0.1") == Saving(70_000, 90_000)
