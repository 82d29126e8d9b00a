"""The verdict's words: which work has the path, from how much on, and the evidence in other quantities."""

from __future__ import annotations

import pytest

from stepcrit.answers.verdict import verdict
from tests.answers.drawn import Event, call, event, figures_of, note, op, words, work

GEMM, REDUCE, COPY = "gemm", "ncclDevKernel_AllReduce", "Memcpy DtoD (Device -> Device)"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def one_chain(host: int, gap: int, name: str = GEMM) -> list[Event]:
    """A chain of 100: host work, a delay, and one device activity for the rest."""
    # host  |op 0..4, call 4..host|
    # s7                           - gap -[ name ..100]
    return [op("op", 0, 4), call("cudaLaunchKernel", (4, host), 1), work(name, (host + gap, 100), 1)]


def told(chrome: list[Event], step: int | None = None) -> tuple[str, str]:
    found = verdict(figures_of(chrome, step))
    return found.code, words(found.headline)


def evidence(chrome: list[Event], about: str, step: int | None = None) -> list[str]:
    lines = [words(line) for line in verdict(figures_of(chrome, step)).evidence]
    return [line for line in lines if about in line]


# --- the headline ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chrome", "expected"),
    [
        # half of the path is a majority: 30 host, 20 delay, 50 device
        (one_chain(30, 20), ("device", "device-bound: kernels are 0.5 of the critical path")),
        (one_chain(30, 20, REDUCE), ("communication", "communication-bound: collectives are 0.5 of the critical path")),
        (one_chain(30, 20, COPY), ("copy", "copy-bound: copies are 0.5 of the critical path")),
        (one_chain(30, 50), ("gap", "gap-bound: 0.5 of the critical path is delay between activities")),
        # just less than half is none: 30 host, 21 delay, 49 device, and so on
        (one_chain(30, 21), ("mixed", "mixed: kernels 0.49 and host 0.3 of the critical path")),
        (one_chain(30, 21, REDUCE), ("mixed", "mixed: communication 0.49 and host 0.3 of the critical path")),
        (one_chain(30, 21, COPY), ("mixed", "mixed: copies 0.49 and host 0.3 of the critical path")),
        (one_chain(30, 49), ("mixed", "mixed: gaps 0.49 and host 0.3 of the critical path")),
        (one_chain(49, 21), ("mixed", "mixed: host 0.49 and kernels 0.3 of the critical path")),
    ],
)  # fmt: skip
def test_half_of_the_path_is_what_a_headline_needs(chrome: list[Event], expected: tuple[str, str]) -> None:
    assert told(chrome) == expected


@pytest.mark.parametrize(("until", "largest"), [(31, "host op (0.31)"), (29, "launch (0.31)")])
def test_host_bound_names_the_hosts_largest_class(until: int, largest: str) -> None:
    """Host until 60, of that an operator until `until` and its call from there on; kernel 60..100."""
    chrome = [op("op", 0, until), call("cudaLaunchKernel", (until, 60), 1), work(GEMM, (60, 100), 1)]
    assert told(chrome) == (
        "host",
        f"host-bound: the host is 0.6 of the critical path, most of it {largest}",
    )


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (44, ("input", "input-bound: waiting for the next batch is 0.45 of the critical path")),
        (46, ("host", "host-bound: the host is 0.54 of the critical path, most of it input (0.45)")),
    ],
)  # fmt: skip
def test_input_bound_means_that_no_class_has_more_of_the_path(kernel: int, expected: tuple[str, str]) -> None:
    """The batch takes 45 and is the host's largest class; the kernel has one less, or one more."""
    # host  |next batch 0..45|op, call ..100-kernel|
    # s7                                           [kernel ..100]
    end = 100 - kernel
    chrome = [
        note(LOADER, 0, 45), op("op", 45, 50), call("cudaLaunchKernel", (50, end), 1), work(GEMM, (end, 100), 1),
    ]  # fmt: skip
    assert told(chrome) == expected


# --- the evidence ------------------------------------------------------------------------------


def with_overhead(*spans: tuple[int, int]) -> list[Event]:
    """Host 0..100 (operator, then its call), kernel 100..200, and what the profiler did meanwhile."""
    own = [event("overhead", "Activity Buffer Request", span, (1, 99)) for span in spans]
    return [op("op", 0, 90), call("cudaLaunchKernel", (90, 100), 1), work(GEMM, (100, 200), 1), *own]


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        ([(10, 12)], 0.01),  # one percent of the step is worth a line
        ([(10, 11)], None),
        ([(10, 20), (15, 30)], 0.1),  # 10..30: nothing counts twice
        ([(99, 150)], None),  # 1 of it lies beside the host, the rest beside the kernel
    ],
)
def test_the_profilers_own_work_is_told_where_the_host_carries_the_path(
    spans: list[tuple[int, int]], share: float | None
) -> None:
    said = evidence(with_overhead(*spans), "profiler's own work")
    what = "the profiler's own work lies beside {} of the path: without it those host stretches are shorter"
    assert said == ([what.format(share)] if share else [])


def on_devices(count: int) -> list[Event]:
    """Device i communicates from its launch on for 10 more than the one before."""
    # host  |op 0..2 |l0 2..3|l1 3..4|l2 4..5|
    # dev 0                  [3..53]
    # dev 1                          [4....64]
    # dev 2                                  [5.....75]
    chrome = [op("op", 0, 2)]
    for i in range(count):
        at = 3 + i
        chrome.append(call("cudaLaunchKernel", (at - 1, at), i + 1))
        chrome.append(work(REDUCE, (at, at + 50 + 10 * i), i + 1, device=i))
    return chrome


def test_two_devices_tell_of_their_communication_the_busiest_first() -> None:
    of = "device {} communicates {}: 0 covered by computing, {} not covered"
    assert evidence(on_devices(3), "communicates") == [
        of.format(2, 70_000, 70_000),
        of.format(1, 60_000, 60_000),
    ]
    assert evidence(on_devices(1), "communicates") == [of.format(0, 50_000, 50_000)]
    assert evidence(one_chain(30, 20), "communicates") == []


def steps(cpu: int, gpu: int) -> list[Event]:
    """Four steps of one call and one kernel, which starts with its call's end or behind the one before."""
    # host  |c0     |c1     |c2     |c3     |       with cpu > gpu each window is the rest of a call and a
    # s7            [g0]    [g1]    [g2]    [g3]    kernel beside the next call: cpu together
    chrome, free = [], 0
    for i in range(4):
        span = (cpu * i, cpu * (i + 1))
        start = max(span[1], free)
        free = start + gpu
        chrome += [
            note(f"ProfilerStep#{i}", *span),
            call("cudaLaunchKernel", span, i + 1),
            work(GEMM, (start, free), i + 1),
        ]
    return chrome  # fmt: skip


@pytest.mark.parametrize(
    ("cpu", "gpu", "share"),
    [
        (100, 11, 0.11),
        (100, 10, None),  # a tenth of the path is not worth the line
        (100, 150, None),  # the device carries the pace itself
    ],
)
def test_where_the_host_carries_the_pace_the_devices_part_is_told(
    cpu: int, gpu: int, share: float | None
) -> None:
    said = evidence(steps(cpu, gpu), "beside the next one", step=2)
    assert [line.partition(" of the path")[0] for line in said] == (
        [f"the device's {share}"] if share else []
    )
