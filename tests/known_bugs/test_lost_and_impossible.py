"""Rows that cannot be true, and device work that the profiler lost."""

from __future__ import annotations

from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import row_of, step, trace


def lacking(count: int, *without: int) -> list[Event]:
    """Steps of four kernels each; of some, every kernel is missing."""
    found = []
    for number in range(count):
        found += step(number)
        for n in range(3):
            at, correlation = 100 * number + 40 + 4 * n, 1000 + 10 * number + n
            found += [call("cudaLaunchKernel", (at, at + 2), correlation)]
            found += [work("add_kernel", (100 * number + 90 + 2 * n, 100 * number + 92 + 2 * n), correlation)]
    return [one for one in found if not (one["cat"] == "kernel" and one["ts"] // 100 in without)]


def test_b062_steps_whose_kernels_are_missing_are_named_and_not_used(ask: Ask) -> None:
    """Launches without kernels in the first 3 of 50 steps: they are not in the sample."""
    answer = ask(lacking(50, 0, 1, 2))
    assert answer.code == 0
    steps = {one["label"]: one for one in answer.data["steps"]}
    for number in (0, 1, 2):
        assert not steps[f"ProfilerStep#{number}"]["used"]
        assert steps[f"ProfilerStep#{number}"]["why_not"]
    used = [one["elapsed_ns"] for one in answer.data["steps"] if one["used"] and one["is_period"]]
    assert len(used) >= 45
    assert set(used) == {100_000}
    assert answer.data["elapsed_ns"] == 100_000


def test_b077_copies_without_kernels_are_not_all_that_the_device_did(ask: Ask) -> None:
    """20 launches of kernels own nothing, 20 copies are there: the finding has both numbers."""
    events: list[Event] = []
    for n in range(20):
        at = 100 * n
        events += [
            op("aten::mm", at, at + 60),
            call("cudaLaunchKernel", (at + 5, at + 10), 2 * n + 1),
            call("cudaMemcpyAsync", (at + 15, at + 20), 2 * n + 2),
            work("Memcpy HtoD (Pinned -> Device)", (at + 30, at + 40), 2 * n + 2),
        ]
    answer = ask(events)
    assert answer.data["device_busy_ns"] == {"0": 200_000}
    (told,) = (one for one in answer.shown["findings"] if one["code"] == "P307")
    assert told["count"] == 20
    assert "20 of 20" in str(told["what"])


def test_b098_graph_launches_without_their_kernels_make_idle_time_unreliable(ask: Ask) -> None:
    """200 launches, kernels of 20: the rest of the time is not known to be idle, and that is told."""
    events = [op("replay", 0, 20_000)]
    for n in range(200):
        events.append(call("cudaGraphLaunch", (100 * n + 10, 100 * n + 20), n + 1))
        if n % 10 == 0:
            events.append(work("k", (100 * n + 30, 100 * n + 60), n + 1))
    answer = ask(events)
    assert answer.code == 0
    assert answer.data["device_busy_ns"] == {"0": 20 * 30_000}
    (told,) = (one for one in answer.shown["findings"] if one["code"] == "P308")
    assert told["count"] == 180
    assert "idle time is not reliable" in str(told["what"])


def row_of_kernels(count: int, *, length: float = 25, bad: tuple[int, ...] = ()) -> list[Event]:
    """Kernels every 30 µs on one stream; the bad ones are said to last 1.6 s."""
    events = [op("aten::mm", 0, 30 * count)]
    for n in range(count):
        events.append(call("cudaLaunchKernel", (30 * n, 30 * n + 5), n + 1))
        kernel = work("k", (30 * n + 10, 30 * n + 10 + 25), n + 1)
        kernel["dur"] = 1_600_000 if n in bad else length
        events.append(kernel)
    return events


def test_b103_a_kernel_that_outlasts_the_next_ones_is_cut_and_told(ask: Ask) -> None:
    answer = ask(row_of_kernels(20, bad=(5,)))
    assert answer.code == 0
    # no longer than the longest sound one of its name: 25 µs like the others
    assert answer.data["summed_ns"]["device"] == 20 * 25_000
    assert answer.data["device_busy_ns"] == {"0": 20 * 25_000}
    (told,) = (one for one in answer.shown["findings"] if one["code"] == "P301")
    assert told["count"] == 1
    assert "1600000000" in str(told["what"]).replace("\u202f", "") or "1.6" in str(told["what"])
    assert ask(row_of_kernels(20, bad=(5,)), "analyze", "--strict").code == 4


def test_b104_a_few_broken_rows_do_not_become_the_headline(ask: Ask) -> None:
    """7 of 700 rows, which as written would be 99.8 % of the time on the device."""
    bad = tuple(range(50, 700, 100))
    assert len(bad) == 7
    answer = ask(row_of_kernels(700, bad=bad))
    assert answer.data["summed_ns"]["device"] == 700 * 25_000
    (told,) = (one for one in answer.shown["findings"] if one["code"] == "P301")
    assert told["count"] == 7


def test_b104_overlaps_of_a_microsecond_raise_no_alarm(ask: Ask) -> None:
    answer = ask(row_of_kernels(50, length=31))
    assert {"P301", "P302"}.isdisjoint(answer.codes)
    # 50 starts 30 apart, and the last runs 31
    assert answer.data["device_busy_ns"] == {"0": 49 * 30_000 + 31_000}


def test_b112_a_frame_whose_return_was_lost_ends_with_the_frame_around_it(ask: Ask) -> None:
    """`lost` runs to the end of the recording, though `step`, which called it, ended at 50: 350 µs too many."""
    events = [
        event("python_function", "train.py(1): main", (0, 400)),
        event("python_function", "train.py(10): step", (5, 50)),
        event("python_function", "train.py(20): lost", (10, 400)),
        op("aten::mm", 15, 30),
        op("aten::add", 200, 390),
    ]
    answer = ask(events, "doctor")
    (odd,) = (one for one in answer.data["implausible"] if one["code"] == "P310")
    assert (odd["count"], odd["cut_ns"], odd["example"]) == (1, 350_000, "train.py(20): lost")
    found = trace(events)
    frames = {
        name: found.raw.events.name_of(int(found.links.frame[row_of(found.raw, name)]))
        for name in ("aten::mm", "aten::add")
    }
    assert frames == {"aten::mm": "train.py(20): lost", "aten::add": "train.py(1): main"}
