"""Changes to durations and gaps: exact arithmetic, what an amount means, and how several combine."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from stepcrit.errors import UsageError
from stepcrit.graph.change import Applied, _times, apply_changes, parse_change, parse_duration
from stepcrit.graph.change import Options as How
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import NodeKind
from stepcrit.session import Options, Trace
from tests.builders import event, trace

CPP = "void gemm<int, (A)1 == 2>(std::array<char*, 3ul>)"


def step() -> StepGraph:
    """Two kernels in a row; the host is cut at each launch, so `outer` lies on several nodes."""
    # host  outer 0..40 { A 0..10, B 10..20, op 20..36 { L1 22..26, L2 28..32 } }
    # s7    k 28..60, overlapped 62..90;  s20 beside 63..80
    return Trace(
        trace(
            [
                event("cpu_op", "outer", (0, 40), (1, 1)),
                event("cpu_op", "A", (0, 10), (1, 1)),
                event("cpu_op", "B", (10, 20), (1, 1)),
                event("cpu_op", "op", (20, 36), (1, 1)),
                event("cuda_runtime", "cudaLaunchKernel", (22, 26), (1, 1), correlation=1),
                event("cuda_runtime", "cudaLaunchKernel", (28, 32), (1, 1), correlation=2),
                event("kernel", "k", (28, 60), (0, 7), correlation=1, stream=7),
                event("kernel", CPP, (62, 90), (0, 7), correlation=2, stream=7),
            ]
        ),
        Options(),
    ).view()


def split() -> StepGraph:
    """The second kernel begins before the first has ended, so the first is two nodes: 15 and 5."""
    return Trace(
        trace(
            [
                event("cpu_op", "op", (0, 8), (1, 1)),
                event("cuda_runtime", "cudaLaunchKernelExC", (1, 3), (1, 1), correlation=1),
                event("cuda_runtime", "cudaLaunchKernelExC", (4, 6), (1, 1), correlation=2),
                event("kernel", "first", (10, 30), (0, 7), correlation=1, stream=7),
                event("kernel", "second", (25, 40), (0, 7), correlation=2, stream=7),
            ]
        ),
        Options(),
    ).view()


def applied(view: StepGraph, *changes: str, **how: Any) -> Applied:
    """Changes written as the user types them: "shrink k=0.5"."""
    return apply_changes(view, [parse_change(*words.split(" ", 1)) for words in changes], How(**how))


def host_and_device(view: StepGraph, *changes: str, **how: Any) -> tuple[int, int]:
    """Host and device time after changes, in ns."""
    dur, kind = applied(view, *changes, **how).dur_ns, view.built.graph.kind
    return int(dur[kind < NodeKind.KERNEL].sum()), int(dur[kind >= NodeKind.KERNEL].sum())


HOST, K, SECOND = 40_000, 32_000, 28_000
DEVICE = K + SECOND

# --- parsing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "text", "selector", "left"),
    [
        ("shrink", "aten::mm=0.5", "aten::mm", Fraction(1, 2)),
        ("shrink", "aten::mm=0.1", "aten::mm", Fraction(1, 10)),  # not the float next to it
        ("shrink", "aten::mm=1/3", "aten::mm", Fraction(1, 3)),
        ("shrink", "aten::mm=0", "aten::mm", Fraction(0)),
        ("shrink", "aten::mm=2", "aten::mm", Fraction(2)),
        ("speedup", "aten::mm=2x", "aten::mm", Fraction(1, 2)),
        ("speedup", "aten::mm=1.5", "aten::mm", Fraction(2, 3)),
        ("speedup", "aten::mm=0.5x", "aten::mm", Fraction(2)),
        ("shrink", f"{CPP}=0.25", CPP, Fraction(1, 4)),
        ("shrink", "a=b=c=0.5", "a=b=c", Fraction(1, 2)),
        ("shrink", "re:x=(1|2)=0.5", "re:x=(1|2)", Fraction(1, 2)),
        ("shrink", "class:gemm=.5", "class:gemm", Fraction(1, 2)),
    ],
)
def test_last_equals_sign_splits_and_factors_are_exact(
    operation: str, text: str, selector: str, left: Fraction
) -> None:
    change = parse_change(operation, text)
    assert (change.operation, str(change.selector), change.factor) == ("scale", selector, left)


@pytest.mark.parametrize(
    ("words", "ns"),
    [
        ("750ns", 750), ("5us", 5000), ("5µs", 5000), ("1.5 ms", 1_500_000), ("0s", 0), ("2s", 2 * 10**9),
        ("0.1us", 100), ("1e-3ms", 1000), ("1/3us", 333),
    ],
)  # fmt: skip
def test_durations_are_read_exactly(words: str, ns: int) -> None:
    assert parse_duration(words) == ns


@pytest.mark.parametrize(
    "words", ["5", "us", "", "-1us", "5 parsecs", "nanus", "5mus", "1,5ms", "infs", "nans"]
)
def test_what_is_no_duration_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration(words)


def test_greek_mu_is_a_micro() -> None:
    assert parse_duration("5\u03bcs") == 5000


@pytest.mark.parametrize("amount", ["1e99999999", "1e99999999 ", "1e-9_999_999_999", "1" * 5000, "1e"])
def test_numbers_without_end_are_refused_at_once(amount: str) -> None:
    started = time.process_time()
    for operation, unit in (("shrink", ""), ("speedup", "x"), ("set", "us")):
        with pytest.raises(UsageError, match=r"no factor|not a duration"):
            parse_change(operation, f"k={amount}{unit}")
    assert time.process_time() - started < 0.5


def test_growth_beyond_64_bits_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="too long"):
        applied(step(), *["shrink k=1e9"] * 3)


@pytest.mark.parametrize(
    ("operation", "amount"), [("set", "1.5us"), ("add", "250ns"), ("set", "0ns")]
)  # fmt: skip
def test_amounts_are_read_with_their_operation(operation: str, amount: str) -> None:
    change = parse_change(operation, f"a=b={amount}")
    assert (change.operation, str(change.selector)) == (operation, "a=b")
    assert change.amount_ns == parse_duration(amount)


def test_remove_takes_the_whole_text_as_selector() -> None:
    assert str(parse_change("remove", CPP).selector) == CPP
    assert parse_change("remove", "aten::mm=0.5").selector.pattern == "aten::mm=0.5"


@pytest.mark.parametrize(
    ("operation", "text", "says"),
    [
        ("shrink", "aten::mm", "SELECTOR=AMOUNT"),
        ("shrink", "=0.5", "SELECTOR=AMOUNT"),
        ("shrink", "aten::mm=", "no factor"),
        ("shrink", "aten::mm=-1", "no factor"),
        ("shrink", "aten::mm=half", "no factor"),
        ("shrink", "aten::mm=nan", "no factor"),
        ("shrink", "aten::mm=inf", "no factor"),
        ("shrink", "aten::mm=1/0", "no factor"),
        ("shrink", "aten::mm=2x", "no factor"),
        ("speedup", "aten::mm=0x", "no factor"),
        ("speedup", "aten::mm=-2x", "no factor"),
        ("set", "aten::mm=5", "not a duration"),
        ("add", "aten::mm=-5us", "not a duration"),
        ("set", "aten::mm", "SELECTOR=AMOUNT"),
    ],
)
def test_amounts_that_cannot_be_read_are_wrong_use(operation: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_change(operation, text)


@pytest.mark.parametrize("words", ["shrink k=1e-30", "shrink k=1e30", "set k=1e30s", "speedup k=1e-30x"])
def test_amounts_beyond_all_measure_are_no_crash(words: str) -> None:
    try:
        after = applied(step(), words).dur_ns
    except UsageError:
        return
    assert (after >= 0).all()


# --- arithmetic --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "factor", [Fraction(1, 3), Fraction(1, 2), Fraction(7, 10), Fraction(5, 2), Fraction(0)]
)
def test_scaling_rounds_half_up_in_integers(factor: Fraction) -> None:
    values = np.array([0, 1, 2, 3, 10, 999_999_999_999, 2**55], np.int64)
    exact = [int(Fraction(int(v)) * factor + Fraction(1, 2)) for v in values]
    assert _times(values, factor).tolist() == exact


def test_scaling_stays_exact_where_64_bits_end() -> None:
    """Numerators so long that the product needs more than 64 bits."""
    third = Fraction("0.33333333333333333333333")
    values = np.array([3 * 10**12, 7], np.int64)
    assert _times(values, third).tolist() == [10**12, 2]
    assert _times(np.array([2**61 // 3], np.int64), Fraction(2, 3)).tolist() == [
        int(Fraction(2**61 // 3) * Fraction(2, 3) + Fraction(1, 2))
    ]


def test_factor_one_changes_nothing() -> None:
    view = step()
    assert (applied(view, "shrink *=1", side="both").dur_ns == view.built.graph.dur_ns).all()


# --- one change --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "host", "device"),
    [
        ("shrink k=0.5", HOST, DEVICE - K // 2),
        ("speedup k=4x", HOST, DEVICE - 3 * K // 4),
        ("shrink k=2", HOST, DEVICE + K),
        (f"shrink {CPP}=0", HOST, K),
        ("set k=1us", HOST, SECOND + 1000),
        ("add k=1us", HOST, DEVICE + 1000),
        ("remove k", HOST, SECOND),
        ("set op=1us", HOST, 2000),  # each of its two kernels
        ("shrink A=0.5", HOST - 5000, DEVICE),
        ("shrink class:launch=0", HOST - 8000, DEVICE),
    ],
)
def test_one_change_does_what_it_says_and_nothing_else(words: str, host: int, device: int) -> None:
    assert host_and_device(step(), words) == (host, device)


def test_host_range_over_several_nodes_is_set_as_one() -> None:
    """The range is cut at both launch points: 16 µs, calls included, lie on three nodes, and become 1 µs in all."""
    view = step()
    assert len(np.unique(applied(view, "set op=1us", side="host", self_only=True).selections[0].node)) > 1
    assert host_and_device(view, "set op=1us", side="host", self_only=True)[0] == HOST - 16_000 + 1000
    assert host_and_device(view, "add op=1us", side="host", self_only=True)[0] == HOST + 1000


@pytest.mark.parametrize(("words", "host"), [("set outer=5us", 5000), ("add outer=5us", HOST + 5000)])
def test_operator_with_nested_ranges_is_set_as_one(words: str, host: int) -> None:
    assert host_and_device(step(), words, side="host")[0] == host


def test_each_piece_of_untracked_time_is_set_by_itself() -> None:
    view = Trace(
        trace(
            [
                event("cpu_op", "A", (0, 10), (1, 1)),
                event("cpu_op", "B", (14, 20), (1, 1)),
                event("cpu_op", "C", (30, 40), (1, 1)),
                event("cuda_runtime", "cudaLaunchKernel", (31, 33), (1, 1), correlation=1),
                event("kernel", "k", (35, 50), (0, 7), correlation=1, stream=7),
            ]
        ),
        Options(),
    ).view()
    assert host_and_device(view, "set class:untracked=1us")[0] == 26_000 + 2000
    assert host_and_device(view, "add class:untracked=1us")[0] == 40_000 + 2000


def test_activity_in_two_parts_is_set_as_one_and_scaled_as_two() -> None:
    view = split()
    assert (view.built.graph.part > 0).sum() == 2
    for words, first in (
        ("set first=7us", 7000),
        ("add first=7us", 27_000),
        ("shrink first=0.5", 10_000),
        ("remove first", 0),
    ):
        assert host_and_device(view, words)[1] == 15_000 + first
    assert applied(view, "shrink first=0.5").selections[0].device_count == 1


def test_remove_takes_the_gap_and_the_lag_in_front_and_shrinking_to_nothing_does_not() -> None:
    view = step()
    graph = view.built.graph
    removed, shrunk = applied(view, f"remove {CPP}"), applied(view, f"shrink {CPP}=0")
    node = removed.selections[0].node
    assert np.flatnonzero(removed.removed).tolist() == node.tolist()
    into = np.isin(graph.dst, node)
    for policy in ("join", "edge"):
        assert not removed.delays(view, policy).edge_ns[into].any()
        assert (removed.delays(view, policy).edge_ns[~into] == view.delays(policy).edge_ns[~into]).all()
        assert (shrunk.delays(view, policy).edge_ns == view.delays(policy).edge_ns).all()
    assert view.delays("join").edge_ns[into].any()


def test_removed_host_time_keeps_every_gap() -> None:
    assert not applied(step(), "remove A").removed.any()


def test_gaps_are_scaled_and_removed_and_no_duration_changes() -> None:
    view = step()
    gaps = view.built.arrivals.gap_ns
    half, gone = applied(view, "shrink class:gap=0.5"), applied(view, "remove class:gap")
    assert gaps.any()
    assert half.gap_ns.tolist() == [(g + 1) // 2 for g in gaps.tolist()]
    assert not gone.gap_ns.any()
    for change in (half, gone):
        assert (change.dur_ns == view.built.graph.dur_ns).all()


@pytest.mark.parametrize("operation", ["set", "add"])
def test_gaps_can_be_set_or_are_refused(operation: str) -> None:
    view = step()
    try:
        after = applied(view, f"{operation} class:gap=1us").gap_ns
    except UsageError:
        return
    assert (after != view.built.arrivals.gap_ns).any()


# --- with launch --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "host"),
    [("shrink k=0.5", HOST - 2000), ("remove k", HOST - 4000), ("shrink op=0", HOST - 8000)],
)
def test_launch_calls_change_with_the_work_they_launch(words: str, host: int) -> None:
    view = step()
    assert host_and_device(view, words, with_launch=True)[0] == host
    assert host_and_device(view, words)[0] == HOST


def test_launch_calls_that_are_selected_anyway_change_once() -> None:
    view = step()
    both = host_and_device(view, "shrink op=0.5", side="both")
    assert host_and_device(view, "shrink op=0.5", side="both", with_launch=True) == both


@pytest.mark.parametrize("operation", ["set", "add"])
def test_amounts_do_not_go_with_launch_calls(operation: str) -> None:
    with pytest.raises(UsageError, match="--with-launch"):
        applied(step(), f"{operation} k=1us", with_launch=True)
    host = host_and_device(step(), f"{operation} A=1us", with_launch=True)[0]  # no launch calls, no question
    assert host == host_and_device(step(), f"{operation} A=1us")[0]


def graph_launch() -> StepGraph:
    """One call launches two kernels."""
    return Trace(
        trace(
            [
                event("cpu_op", "replay", (0, 20), (1, 1)),
                event("cuda_runtime", "cudaGraphLaunch", (4, 10), (1, 1), correlation=1),
                event("kernel", "one", (12, 20), (0, 7), correlation=1, stream=7),
                event("kernel", "two", (21, 30), (0, 7), correlation=1, stream=7),
            ]
        ),
        Options(),
    ).view()


@pytest.mark.parametrize(
    ("changes", "host"),
    [
        (("remove one",), 20_000),
        (("shrink one=0.5",), 20_000),
        (("remove one", "remove two"), 14_000),
        (("remove replay",), 14_000),
        (("shrink replay=0.5",), 17_000),
    ],
)
def test_call_that_launches_several_changes_only_with_all_of_them(
    changes: tuple[str, ...], host: int
) -> None:
    assert host_and_device(graph_launch(), *changes, with_launch=True)[0] == host


# --- several ------------------------------------------------------------------------------------


def test_changes_to_different_things_add_up() -> None:
    assert host_and_device(step(), "shrink k=0.5", f"add {CPP}=1us", "shrink A=0", "shrink B=0.5") == (
        HOST - 15_000,
        DEVICE - K // 2 + 1000,
    )


def test_second_change_sees_what_the_first_left() -> None:
    assert host_and_device(step(), "shrink k=0.5", "shrink k=0.5")[1] == SECOND + K // 4
    assert host_and_device(step(), "shrink k=0.5", "add k=1us")[1] == SECOND + K // 2 + 1000
    assert host_and_device(step(), "add k=1us", "set k=3us")[1] != SECOND  # in the order given


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (("set k=64us", "shrink k=0.5"), 32_000),
        (("set k=64us", "remove k"), 0),
        (("shrink k=2", "shrink k=0.5"), K),
        (("add k=1us", "set k=3us"), 3000),
    ],
)
def test_second_change_sees_what_the_first_added(changes: tuple[str, ...], left: int) -> None:
    assert host_and_device(step(), *changes)[1] == SECOND + left


@pytest.mark.parametrize(
    ("changes", "host"),
    [
        (("shrink A=0", "shrink A=0"), HOST - 10_000),
        (("shrink A=0.5", "shrink A=0.5"), HOST - 7500),
        (("set A=1us", "shrink A=0.5"), HOST - 9500),
    ],
)
def test_second_change_of_a_host_range_leaves_its_neighbours_alone(
    changes: tuple[str, ...], host: int
) -> None:
    assert host_and_device(step(), *changes)[0] == host


def test_every_selection_is_reported_in_order_as_observed() -> None:
    result = applied(step(), "shrink k=0.5", "shrink k=0.5", "shrink A=0")
    assert [(s.device_count, s.host_count, s.total_ns) for s in result.selections] == [
        (1, 0, K), (1, 0, K), (0, 1, 10_000),
    ]  # fmt: skip


@pytest.mark.parametrize("words", ["shrink *=0", "remove *", "set *=0ns", "shrink *=0.001"])
def test_no_duration_becomes_negative(words: str) -> None:
    launches = ({"with_launch": True}, {"side": "both", "with_launch": True})
    for how in ({}, {"side": "both"}, *(() if words.startswith("set") else launches)):
        assert (applied(step(), words, words, **how).dur_ns >= 0).all()


def test_growth_by_entry_adds_up_to_the_growth_by_node() -> None:
    """What the answer apportions by owner is what replay used."""
    view = step()
    result = applied(view, "shrink outer=0.3", "add k=5us", "shrink class:launch=2", side="both")
    node, _, grown = result.changed
    by_node = np.bincount(node, grown, len(view.built.graph)).astype(np.int64)
    assert (view.built.graph.dur_ns + by_node == result.dur_ns).all()


def test_nothing_matched_by_one_of_several_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="nothing matches 'nowhere'"):
        applied(step(), "shrink k=0.5", "shrink nowhere=0.5")
