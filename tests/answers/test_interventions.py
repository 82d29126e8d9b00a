"""Every kind of intervention on a drawn trace in which the work that it is about carries the path."""

from __future__ import annotations

import pytest

from stepcrit.answers.advice import Next, what_next
from tests.answers.drawn import Event, call, event, figures_of, note, op, words, work

LAUNCH, GRAPH, FREE = "cudaLaunchKernel", "cudaGraphLaunch", "cudaMalloc"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
TO_DEVICE, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"

COLLECTIVES = (
    "start the collectives of c10d::allreduce_ (most: ncclDevKernel_AllReduce) earlier or smaller, "
    "or find the rank that is waited for (one trace cannot tell)"
)


def found(chrome: list[Event]) -> dict[str, str]:
    """Code -> what to try, in order."""
    return {one.code: words(one.what) for one in what_next(figures_of(chrome))}


def on_host(*events: Event, until: int = 90) -> list[Event]:
    """What the host does first, until a short kernel is launched."""
    # host  |events ..until|op, call 3|
    # s7                              [k 5]
    end = until + 3
    return [*events, op("op", until, end), call(LAUNCH, (until + 1, end), 1), work("gemm", (end, end + 5), 1)]


def on_device(operator: str, name: str) -> list[Event]:
    """One operator launches one long activity."""
    # host  |op 0..4: call 1..3|
    # s7                   [name 3..103]
    return [op(operator, 0, 4), call(LAUNCH, (1, 3), 1), work(name, (3, 103), 1)]


@pytest.mark.parametrize(
    ("chrome", "code", "what"),
    [
        (
            on_host(note(LOADER, 0, 90)), "input",
            f"fetch batches earlier: more DataLoader workers, prefetching, or a cheaper {LOADER}",
        ),
        (
            on_host(call("cudaDeviceSynchronize", (0, 90), 9)), "sync",
            "take the wait out of the step: cudaDeviceSynchronize blocks the host until the device drains",
        ),
        (
            on_device("c10d::allreduce_", "ncclDevKernel_AllReduce"), "comm",
            COLLECTIVES,
        ),
        (
            on_host(op("gloo:all_reduce", 0, 90)), "comm-host",
            "look at gloo:all_reduce on the host: the step waits for it there",
        ),
        (
            on_device("aten::copy_", PINNED), "copy",
            f"avoid or overlap the copies of aten::copy_ (most: {PINNED}): keep data on the device",
        ),
        (
            on_device("aten::copy_", TO_DEVICE), "copy",
            f"avoid or overlap the copies of aten::copy_ (most: {TO_DEVICE}): pin the host memory, keep data on the device",
        ),
        (
            on_device("aten::zero_", "Memset (Device)"), "copy",
            "avoid aten::zero_: fewer buffers to clear",
        ),
        (
            on_host(call(LAUNCH, (0, 90), 9), work("other", (90, 91), 9, stream=20)), "launches",
            "launch less often: fuse operators (torch.compile), or capture the step in a graph; cudaLaunchKernel carries it",
        ),
        (
            on_host(note("Optimizer.step#Adam.step", 0, 90)), "optimizer",
            "make the update cheaper to launch: fused or foreach optimizer instead of Optimizer.step#Adam.step",
        ),
        (
            on_device("aten::_fused_adam_", "multi_tensor_apply_kernel<FusedAdamMathFunctor>"), "optimizer-kernels",
            "make the update's kernels cheaper: fused optimizer, lower precision states; aten::_fused_adam_ leads",
        ),
        (
            on_host(op("aten::sort", 0, 90)), "host-ops",
            "run fewer operators on the host: fuse or compile around aten::sort",
        ),
        (
            [op("aten::sort", 0, 90)], "cpu-ops",
            "make aten::sort cheaper, it computes on the CPU: threads, data type, layout, a fused kernel",
        ),
        (
            on_host(op("start", 0, 1)), "python",
            "find what the host does where no event is open: record once with with_stack=True",
        ),
        (
            on_host(call(GRAPH, (0, 90), 9), work("other", (90, 91), 9, stream=20)), "graph-launch",
            "call cudaGraphLaunch earlier, so that launching the graph overlaps device work",
        ),
        (on_host(call(FREE, (0, 90), 9)), "calls: cudaMalloc", "call cudaMalloc less often in the step"),
        (
            on_device("aten::mm", "gemm"), "kernels: gemm",
            "make the kernels of aten::mm faster: precision, layout, shapes, or a fused implementation",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)  # fmt: skip
def test_each_kind_of_work_has_its_own_words(chrome: list[Event], code: str, what: str) -> None:
    """It has most of the path, so it comes first."""
    assert next(iter(found(chrome).items())) == (code, what)


# --- start-up ----------------------------------------------------------------------------------


def calls(name: str, *lengths: int) -> list[Event]:
    """Calls of one name, one after the other, each launching an activity of its own queue where it is a launch."""
    events, at = [], 0
    for i, length in enumerate(lengths, 10):
        events.append(call(name, (at, at + length), i))
        at += length
        events += [work("other", (at, at + 1), i, stream=20)] if "Launch" in name else []
    return on_host(*events, until=at)


@pytest.mark.parametrize(
    ("chrome", "first"),
    [
        (calls(LAUNCH, 1000), "start-up: cudaLaunchKernel"),
        (calls(LAUNCH, 999), "launches"),  # a millisecond is a one-off, less is not
        (calls(FREE, 1000), "start-up: cudaMalloc"),
        (calls(FREE, 999), "calls: cudaMalloc"),
        (calls(FREE, 1001, 1000), "start-up: cudaMalloc"),  # more than half of the name's time
        (calls(FREE, 1000, 1000), "calls: cudaMalloc"),
        (calls(GRAPH, 1000), "graph-launch"),  # launching a graph is long by nature
    ],
)
def test_a_long_call_with_most_of_its_names_time_is_start_up(chrome: list[Event], first: str) -> None:
    assert next(iter(found(chrome))) == first


def test_start_up_says_how_long_its_call_is() -> None:
    said = found(calls(FREE, 1001, 1000))["start-up: cudaMalloc"]
    assert said == "move start-up out of the step: cudaMalloc has one call of 1001000"


# --- what is recorded first, and how much is shown ---------------------------------------------


def delayed(gap: int) -> list[Event]:
    """A step of 400 with a delay that nothing explains."""
    # host  |op 0..10: call 8..10|
    # s7                          - gap -[gemm ..400]
    return [op("op", 0, 10), call(LAUNCH, (8, 10), 1), work("gemm", (10 + gap, 400), 1)]


def record(chrome: list[Event]) -> list[Next]:
    return [one for one in what_next(figures_of(chrome)) if one.code.startswith("record")]


def test_a_delay_that_nothing_explains_is_to_be_recorded_from_a_tenth_of_the_path_on() -> None:
    assert record(delayed(40)) == []
    (one,) = record(delayed(41))
    assert (one.code, words(one.what)) == (
        "record", "record the missing evidence before changing code: stepcrit doctor says which",
    )  # fmt: skip
    assert words(one.evidence) == "0.1025 of the path (41000) is delay that no recorded dependency explains"
    assert words(one.refuted) == (
        "disproved if a recording with cuda_sync events and stacks leaves the same delay unexplained"
    )
    assert next(iter(found(delayed(41)))) == "record"


def test_a_delay_of_any_length_is_explained_up_to_20_us() -> None:
    """20 of 40 is half of the path: launch latency, as long as it is no longer than 20."""
    short = [op("op", 0, 10), call(LAUNCH, (8, 10), 1), work("gemm", (30, 40), 1)]
    assert record(short) == []
    assert len(record([*short[:2], work("gemm", (31, 40), 1)])) == 1


def test_a_device_that_was_not_recorded_is_to_be_recorded_first() -> None:
    assert next(iter(found([op("op", 0, 90), call(LAUNCH, (10, 20), 1)]))) == "record-device"


@pytest.mark.parametrize(("kinds", "shown"), [(2, 2), (3, 3), (4, 3)])
def test_three_interventions_are_shown(kinds: int, shown: int) -> None:
    """Kinds of work, each longer than the next: the largest savings come first."""
    # host  |sync 400|batch 300|operator 200|call 100|op .. call|
    # s7                                                         [gemm 5]
    each = [
        call("cudaDeviceSynchronize", (0, 400), 9), note(LOADER, 400, 700), op("aten::sort", 700, 900), call(FREE, (900, 1000), 8),
    ]  # fmt: skip
    ends = [400, 700, 900, 1000]
    codes = list(found(on_host(*each[:kinds], until=ends[kinds - 1])))
    assert codes == ["sync", "input", "host-ops", "calls: cudaMalloc"][:shown]


def test_what_is_to_be_recorded_is_one_of_the_three() -> None:
    before = [
        call("cudaDeviceSynchronize", (0, 400), 9), note(LOADER, 400, 700), op("aten::sort", 700, 900),
        call(LAUNCH, (900, 902), 1), work("gemm", (1100, 1105), 1),
    ]  # fmt: skip
    assert list(found(before)) == ["record", "sync", "input"]


def test_what_saves_less_than_one_percent_is_no_intervention() -> None:
    """An operator of 100 in a step of 10 000 is worth a line, one of 99 is not; all the rest is the kernel."""
    codes = []
    for length in (100, 99):
        chrome = [
            op("aten::sort", 0, length), op("aten::mm", length, length + 4), call(LAUNCH, (length, length + 4), 1),
            work("gemm", (length + 4, 10_000), 1), event("cpu_op", "aside", (0, 1), (1, 2)),
        ]  # fmt: skip
        codes.append(list(found(chrome)))
    assert codes == [["kernels: gemm", "host-ops"], ["kernels: gemm"]]
