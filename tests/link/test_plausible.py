"""Rows that cannot be true, each kind on a trace small enough to see what is right. Ids are those of the bug log."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.errors import PartialError
from stepcrit.ingest import read_trace
from stepcrit.link.launches import link_launches
from stepcrit.link.plausible import make_plausible
from stepcrit.model.events import DEVICE_KINDS, EventKind
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace
from stepcrit.session import Options, load
from tests.builders import Event, event

FIXTURES = Path(__file__).parents[2] / "fixtures"
HOUR = 3_600_000_000
"""In µs, as traces count."""


def read(chrome: list[Event], **header: Any) -> RawTrace:
    """A trace through the reader, as a file would come."""
    events = [{"ph": "X", **one} for one in chrome]
    return read_trace(io.BytesIO(json.dumps({"traceEvents": events, **header}).encode()))


def call(name: str, span: tuple[int, int], correlation: int, pid: int = 100) -> Event:
    return event("cuda_runtime", name, span, (pid, 1), correlation=correlation)


def kernel(name: str, span: tuple[int, int], correlation: int, stream: int = 7, **args: Any) -> Event:
    return event("kernel", name, span, (0, stream), correlation=correlation, stream=stream, device=0, **args)


def loop(count: int, *, api: str = "cuda", take: int = 20, gap: int = 30) -> list[Event]:
    """`count` launches every `gap` µs, each 5 µs long, whose kernels begin 8 µs after their calls."""
    chrome = [event("cpu_op", "aten::mm", (0, count * gap), (100, 1))]
    for i in range(count):
        chrome += [
            call(f"{api}LaunchKernel", (i * gap, i * gap + 5), i + 1),
            kernel("k", (i * gap + 8, i * gap + 8 + take), i + 1),
        ]
    return chrome


def spans(trace: RawTrace) -> dict[int, tuple[int, int]]:
    """Device rows by correlation, in whole µs since the origin."""
    events = trace.events
    rows = np.flatnonzero(events.is_kind(*DEVICE_KINDS)).tolist()
    return {
        int(events.correlation[row]): (int(events.start_ns[row]) // 1000, int(events.end_ns[row]) // 1000)
        for row in rows
    }


def codes(trace: RawTrace) -> dict[str, int]:
    return {odd.code: odd.count for odd in trace.oddities}


def only(trace: RawTrace) -> Oddity:
    (odd,) = trace.oddities
    return odd


# --- sound traces --------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.json.gz")), ids=lambda path: path.name)
def test_a_sound_trace_passes_as_the_same_object(path: Path) -> None:
    trace = read_trace(path)
    assert make_plausible(trace) is trace


@pytest.mark.parametrize(
    ("why", "chrome"),
    [
        ("B101, B182: a kernel of no length inside another", [kernel("zero", (10, 10), 90)]),
        ("B108: a kernel that starts as the one before it ends", [kernel("tie", (28, 30), 90)]),
        ("B116: an overlap of a rounding", [kernel("late", (27, 29), 90)]),
        ("branches of one graph, 5 ms deep", [kernel("a", (900, 6000), 90), kernel("b", (910, 950), 90)]),
        (
            "a dependent launch that starts 2 ms before its predecessor ends, and ends after it",
            [
                call("cudaLaunchKernelExC", (890, 895), 91),
                kernel("a", (900, 3000), 90),
                kernel("b", (1000, 3010), 91),
            ],
        ),
        (
            "two processes on the lane of a merged file",
            [
                call("cudaLaunchKernel", (890, 895), 90),
                kernel("a", (900, 5000), 90),
                call("cudaLaunchKernel", (890, 895), 91, pid=200),
                kernel("b", (910, 950), 91),
            ],
        ),
        (
            "B106, B145: a sync record over kernels of its queue",
            [event("cuda_sync", "Stream Sync", (0, 900), (0, 7), stream=7, device=0, correlation=77)],
        ),
    ],
)
def test_what_a_queue_allows_is_no_oddity(why: str, chrome: list[Event]) -> None:
    trace = make_plausible(read([*loop(20, gap=40), *chrome]))
    assert codes(trace) == {}, why


def test_lanes_of_rocm_may_hold_several_streams() -> None:
    """A long kernel of one stream beside short ones of another: four hardware queues serve all streams."""
    chrome = loop(40, api="hip", take=200, gap=300)
    chrome += [call("hipLaunchKernel", (890, 895), 90), kernel("long", (903, 2903), 90)]
    assert codes(make_plausible(read(chrome))) == {}


def test_b053_times_below_a_microsecond_are_not_negative() -> None:
    chrome = [{**kernel("k", (0, 0), 1), "ts": 100.7, "dur": 0.2}]
    events = make_plausible(read(chrome)).events
    assert (events.end_ns - events.start_ns).tolist() == [200]


# --- durations -----------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["cuda", "hip"])
def test_b103_a_kernel_of_seconds_ends_before_the_next_of_its_queue(api: str) -> None:
    chrome = loop(200, api=api)
    chrome[2 * 50 + 2] = kernel("slow", (50 * 30 + 8, 50 * 30 + 8 + 1_600_000), 51)
    trace = make_plausible(read(chrome))
    assert spans(trace)[51] == (1508, 1538)  # the next one starts 30 µs later
    odd = only(trace)
    assert (odd.code, odd.count, odd.done, odd.example) == ("P301", 1, Done.SET_RIGHT, "slow")
    assert odd.ns == {"written_ns": 1_600_000_000, "taken_ns": 30_000}
    assert odd.order == 102


def test_b103_an_idle_queue_does_not_make_the_kernel_long_again() -> None:
    """The next kernel starts 500 ms later; no sound kernel of that name took more than 20 µs."""
    chrome = [*loop(20), call("cudaLaunchKernel", (600, 605), 60), kernel("k", (608, 1_600_000), 60)]
    chrome += [call("cudaLaunchKernel", (500_000, 500_005), 61), kernel("k", (500_008, 500_028), 61)]
    trace = make_plausible(read(chrome))
    assert spans(trace)[60] == (608, 628)
    assert codes(trace) == {"P301": 1}


def test_b104_seven_corrupt_rows_do_not_own_the_headline() -> None:
    """What is told of the device is what it is without them."""
    sound, broken = loop(1000), loop(1000)
    for i in range(100, 800, 100):
        broken[2 * i + 2] = kernel("k", (i * 30 + 8, i * 30 + 8 + 1_600_000), i + 1)
    trace = make_plausible(read(broken))
    assert codes(trace) == {"P301": 7}
    assert spans(trace) == spans(read(sound))


def test_a_last_kernel_ends_by_the_return_of_the_call_that_waited_for_it() -> None:
    """No successor refutes it: the synchronize does, which returned at 700."""
    chrome = loop(20)
    chrome[2 * 19 + 2] = kernel("other", (578, 1_600_000), 20)
    chrome += [call("cudaDeviceSynchronize", (620, 700), 99)]
    trace = make_plausible(read(chrome))
    assert spans(trace)[20] == (578, 700)
    assert codes(trace) == {"P301": 1}


def test_a_process_with_two_devices_does_not_say_which_one_its_synchronize_waits_for() -> None:
    chrome = loop(20)
    other = {**kernel("other", (578, 9_000), 50), "pid": 1}
    chrome += [call("cudaLaunchKernel", (570, 575), 50), call("cudaDeviceSynchronize", (620, 700), 99)]
    assert codes(make_plausible(read([*chrome, other]))) == {}


@pytest.mark.parametrize(
    ("row", "until"),
    [
        (event("cpu_op", "op", (590, 10**15), (100, 1)), 600),  # ends with everything else: aten::mm
        (kernel("k", (576, 10**15), 20), 596),  # no k ever took more than 20 µs
        (kernel("other", (576, 10**15), 20), 600),
    ],
)
def test_an_end_years_away_does_not_stretch_the_window(row: Event, until: int) -> None:
    trace = make_plausible(read([*loop(20)[:-1], row]))
    (changed,) = np.flatnonzero(trace.events.start_ns == row["ts"] * 1000)
    assert int(trace.events.end_ns[changed]) == until * 1000
    assert int(trace.events.end_ns.max()) == 600_000
    assert codes(trace) == {"P301": 1}


def test_b060_an_end_before_its_start_extends_nothing() -> None:
    chrome = loop(20)
    chrome[-1] = {**kernel("k", (578, 0), 20), "dur": -1_660_000_000_000_000}
    trace = make_plausible(read(chrome))
    assert spans(trace)[20] == (578, 578)
    assert trace.meta.dropped == {"negative duration clipped to 0": 1}


def test_overlaps_that_no_launch_allows_are_told_and_left() -> None:
    """More than a tenth of the queue: the lane is no queue, and no end is known to be wrong."""
    chrome = [event("cpu_op", "op", (0, 9000), (100, 1))]
    for i in range(9):
        chrome += [call("cudaLaunchKernel", (i * 1000, i * 1000 + 5), i + 1), kernel("k", (i * 1000 + 8, i * 1000 + 4008), i + 1)]  # fmt: skip
    raw = read(chrome)
    trace = make_plausible(raw)
    odd = only(trace)
    assert (odd.code, odd.count, odd.done) == ("P302", 8, Done.TOLD)
    assert odd.ns == {"overlap_ns": 3_000_000}
    assert spans(trace) == spans(raw)


def test_a_lane_that_draws_two_queues_has_no_wrong_ends() -> None:
    """A third of its rows hold whole others: then the lane is no queue, and which ends are wrong is not known."""
    chrome = [event("cpu_op", "op", (0, 60_000), (100, 1))]
    for i in range(10):
        for j, span in enumerate(((0, 5000), (100, 150), (200, 250))):
            at, number = 6000 * i + span[0], 10 * i + j
            chrome += [call("cudaLaunchKernel", (at, at + 5), number), kernel("k", (at + 8, 6000 * i + span[1] + 8), number)]  # fmt: skip
    raw = read(chrome)
    trace = make_plausible(raw)
    assert codes(trace) == {"P302": 10}
    assert spans(trace) == spans(raw)


def test_a_synchronize_covers_only_what_was_launched_before_it() -> None:
    """One in the middle of the loop, and one that began while another thread still launched."""
    chrome = [*loop(20), call("cudaDeviceSynchronize", (29, 30), 98)]
    chrome += [event("cuda_runtime", "cudaLaunchKernel", (640, 660), (100, 2), correlation=50), kernel("k", (670, 5000), 50)]  # fmt: skip
    chrome += [call("cudaDeviceSynchronize", (645, 665), 99)]
    assert codes(make_plausible(read(chrome))) == {}


def test_a_copy_within_a_graph_is_not_waited_for_by_the_launch_of_the_graph() -> None:
    copy = {**kernel("Memcpy DtoH (Device -> Pageable)", (670, 5000), 50), "cat": "gpu_memcpy"}
    chrome = [*loop(20), call("cudaGraphLaunch", (640, 650), 50), copy]
    assert codes(make_plausible(read(chrome))) == {}
    chrome = [*loop(20), call("cudaMemcpyAsync", (640, 700), 50), copy]
    assert codes(make_plausible(read(chrome))) == {"P301": 1}


def test_a_host_clock_of_15_ms_ticks_refutes_no_end_within_a_tick() -> None:
    """The synchronize returned somewhere in the tick that it is stamped with; the kernel ended in it, too."""
    chrome = [event("cpu_op", "op", (0, 300_000), (100, 1))]
    for i in range(20):
        at = 15_000 * i
        chrome += [
            call("cudaLaunchKernel", (at, at), i),
            kernel("k", (at + i * 500 + 100, at + i * 500 + 400), i),
        ]
    chrome += [call("cudaDeviceSynchronize", (285_000, 285_000), 99)]
    assert codes(make_plausible(read(chrome))) == {}


# --- times far away ------------------------------------------------------------------------


@pytest.mark.parametrize("away", [-50 * HOUR, 50 * HOUR])
def test_a_device_row_days_away_is_put_aside(away: int) -> None:
    """Its time says nothing; what is left is the trace without it, time 0 included."""
    stray = kernel("stray", (10**9 + away, 10**9 + away + 5), 500)
    moved = [{**one, "ts": one["ts"] + 10**9} for one in loop(20)]
    trace = make_plausible(read([*moved, stray]))
    assert spans(trace) == spans(read(moved))
    assert trace.meta.origin_ns == 10**12
    odd = only(trace)
    assert (odd.code, odd.count, odd.done, odd.example) == ("P303", 1, Done.PUT_ASIDE, "stray")


def test_a_host_row_at_time_zero_is_put_aside() -> None:
    moved = [{**one, "ts": one["ts"] + 10**15} for one in loop(20)]
    trace = make_plausible(read([*moved, event("cpu_op", "unset", (0, 3), (100, 1))]))
    assert codes(trace) == {"P303": 1}
    assert spans(trace) == spans(read(moved))
    assert "unset" not in [trace.events.name_of(row) for row in range(len(trace.events))]


def test_arguments_follow_their_rows_when_rows_are_put_aside() -> None:
    chrome = [{**one, "ts": one["ts"] + 10**15} for one in loop(20)]
    chrome[2]["args"]["Collective name"] = "allreduce"
    trace = make_plausible(read([event("cpu_op", "unset", (0, 3), (100, 1)), *chrome]))
    (row,) = trace.events.args
    assert trace.events.args[row]["Collective name"] == "allreduce"
    assert trace.events.correlation[row] == 1


def test_an_idle_server_is_not_far_from_itself() -> None:
    """One call 50 minutes after the rest: sound recordings wait for requests."""
    chrome = [*loop(20), call("cudaDeviceSynchronize", (3_000_000_000, 3_000_000_010), 99)]
    assert codes(make_plausible(read(chrome))) == {}


def test_b062_a_row_before_its_launch_and_out_of_order_carries_a_time_of_its_own() -> None:
    chrome = loop(50)
    chrome += [call("cudaLaunchKernel", (20_000, 20_005), 80), kernel("bad", (100, 120), 80)]
    trace = make_plausible(read(chrome))
    odd = next(odd for odd in trace.oddities if odd.code == "P304")
    assert (odd.count, odd.of_count, odd.done, odd.example) == (1, 51, Done.PUT_ASIDE, "bad")
    assert odd.ns == {"off_ns": 19_900_000}
    assert 80 not in spans(trace)
    assert spans(trace) == spans(read(loop(50)))


# --- clocks --------------------------------------------------------------------------------


def shifted(chrome: list[Event], by: int) -> list[Event]:
    """The same with the device's clock off."""
    return [{**one, "ts": one["ts"] + by} if one["cat"] == "kernel" else one for one in chrome]


def test_the_interval_of_methods_o2_is_found() -> None:
    """Launches 10, 20, 30; starts 9, 24, 33; a synchronize returns at 60, its work ends at 55: d in [1, 5], times ten."""
    chrome = [call("cudaLaunchKernel", (at, at + 2), i) for i, at in enumerate((100, 200, 300), 1)]
    chrome += [kernel("k", span, i) for i, span in enumerate(((90, 95), (240, 250), (330, 550)), 1)]
    chrome += [call("cudaDeviceSynchronize", (400, 600), 9)]
    odd = only(make_plausible(read(chrome)))
    assert odd.code == "P305"
    assert odd.ns == {"offset_ns": 10_000, "low_ns": 10_000, "high_ns": 50_000}


@pytest.mark.parametrize("sync", [True, False])
def test_b065_a_gpu_clock_40_us_early_is_set_right_by_its_lower_bound(*, sync: bool) -> None:
    """Kernels begin 8 µs after their call, so 32 µs is the least that causality asks for."""
    end = [call("cudaDeviceSynchronize", (610, 640), 99)] if sync else []
    sound = [*loop(20), *end]
    trace = make_plausible(read(shifted(sound, -40)))
    odd = only(trace)
    assert (odd.code, odd.count, odd.of_count, odd.done) == ("P305", 20, 20, Done.SET_RIGHT)
    # The last kernel ends at 598, seen at 558, awaited until 640: at most 82 µs are missing.
    assert odd.ns == {"offset_ns": 32_000, "low_ns": 32_000, "high_ns": 82_000 if sync else None}
    assert spans(trace) == {i: (a - 8, b - 8) for i, (a, b) in spans(read(sound)).items()}


@pytest.mark.parametrize("hours", [-3, 3])
def test_b067_a_clock_hours_away_is_set_right(hours: int) -> None:
    sound = [*loop(20), call("cudaDeviceSynchronize", (610, 640), 99)]
    trace = make_plausible(read(shifted(sound, hours * HOUR)))
    assert codes(trace).keys() == {"P305"}
    assert int(trace.events.end_ns.max()) < 1_000_000  # no window of hours
    starts = [a for a, _ in spans(trace).values()]
    calls = trace.events.start_ns[trace.events.kind == EventKind.RUNTIME][:20] // 1000
    assert all(0 <= a - c <= 50 for a, c in zip(starts, calls.tolist(), strict=True))


def test_b067_hours_away_without_a_wait_the_fastest_launch_tells() -> None:
    trace = make_plausible(read(shifted(loop(20), 3 * HOUR)))
    assert only(trace).ns == {"offset_ns": -(3 * HOUR + 8) * 1000, "low_ns": -(3 * HOUR + 8) * 1000, "high_ns": None}  # fmt: skip
    assert spans(trace)[1] == (0, 20)


def test_a_clock_that_no_constant_sets_right_is_told_and_left() -> None:
    """Half of the kernels are 40 µs early; the last one ends 10 µs before its synchronize returns."""
    chrome = loop(20)
    chrome = [*shifted(chrome[:21], -40), *chrome[21:], call("cudaDeviceSynchronize", (590, 608), 99)]
    raw = read(chrome)
    trace = make_plausible(raw)
    odd = only(trace)
    assert (odd.code, odd.done) == ("P306", Done.TOLD)
    assert odd.ns == {"offset_ns": None, "low_ns": 32_000, "high_ns": 10_000}
    assert spans(trace) == spans(raw)


def test_one_early_kernel_of_many_is_no_clock() -> None:
    chrome = loop(2000)
    chrome[2 * 1000 + 2] = kernel("k", (1000 * 30 - 5, 1000 * 30 + 10), 1001)
    chrome[2 * 999 + 2] = kernel("k", (999 * 30 + 8, 999 * 30 + 10), 1000)
    raw = read(chrome)
    trace = make_plausible(raw)
    assert codes(trace) == {"P306": 1}
    assert spans(trace) == spans(raw)


def test_a_busy_queue_hides_most_of_a_clock_that_is_off() -> None:
    """5 ms early, and of 300 launches only the first 22 show it by over a millisecond: their order is kept."""
    chrome = [
        event("cpu_op", "op", (0, 61_000), (100, 1)),
        call("cudaDeviceSynchronize", (3000, 60_020), 999),
    ]
    for i in range(300):
        chrome += [call("cudaLaunchKernel", (10 * i, 10 * i + 5), i + 1), kernel("k", (200 * i + 8, 200 * i + 208), i + 1)]  # fmt: skip
    trace = make_plausible(read(shifted(chrome, -5000)))
    assert only(trace).ns == {"offset_ns": 4_992_000, "low_ns": 4_992_000, "high_ns": 5_012_000}
    assert spans(trace)[300] == (59_800, 60_000)


def test_calls_that_share_a_correlation_prove_nothing() -> None:
    """A merge tool left ids as they were: the link may be wrong, so no clock is moved by it."""
    chrome = [*loop(20), kernel("k", (650, 670), 60)]
    chrome += [call("cudaLaunchKernel", (700, 705), 60), call("cudaLaunchKernel", (900, 905), 60, pid=200)]
    assert codes(make_plausible(read(chrome))) == {}


def test_arrows_move_with_the_clock() -> None:
    """Without correlations arrows are the only links: their ends sit at the start of their kernel."""
    chrome: list[Event] = []
    for i in range(20):
        at = i * 30
        chrome += [
            {**call("cudaLaunchKernel", (at, at + 5), 1), "args": {}},
            {**kernel("k", (at - 20, at), 1), "args": {"stream": 7, "device": 0}},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": i + 1, "ts": at, "pid": 100, "tid": 1},
            {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": i + 1, "ts": at - 20, "pid": 0, "tid": 7},
        ]
    trace = make_plausible(read(chrome))
    assert only(trace).ns["offset_ns"] == 20_000
    assert make_plausible(trace) is trace  # nothing is left to be done
    assert int((link_launches(trace.events, trace.flows) >= 0).sum()) == 20


def test_b068_device_rows_alone_are_legal() -> None:
    chrome = [kernel("k", (i * 10, i * 10 + 8), i) for i in range(20)]
    assert codes(make_plausible(read(chrome))) == {}


# --- frames and counters -------------------------------------------------------------------


def frame(name: str, span: tuple[int, int]) -> Event:
    return event("python_function", name, span, (100, 1))


def test_b112_a_frame_without_a_return_ends_with_the_frame_around_it() -> None:
    chrome = [
        *loop(20),
        frame("main", (0, 600)),
        frame("step", (10, 300)),
        frame("lost", (20, 600)),
        frame("next", (310, 590)),
    ]
    trace = make_plausible(read(chrome))
    events = trace.events
    ends = {events.name_of(r): int(events.end_ns[r]) // 1000 for r in np.flatnonzero(events.kind == EventKind.PYTHON)}  # fmt: skip
    assert ends == {"main": 600, "step": 300, "lost": 300, "next": 590}
    odd = only(trace)
    assert (odd.code, odd.count, odd.example, odd.ns) == ("P310", 1, "lost", {"cut_ns": 300_000})


def test_absurd_memory_totals_count_as_not_recorded() -> None:
    def memory(at: int, allocated: int, reserved: int) -> Event:
        args = {
            "Bytes": 8,
            "Total Allocated": allocated,
            "Total Reserved": reserved,
            "Device Type": 1,
            "Device Id": 0,
        }
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": at, "pid": 100, "tid": 1, "args": args}  # fmt: skip

    trace = make_plausible(
        read([*loop(3), memory(1, 100, 200), memory(2, -5000, 200), memory(3, 2**60, 200), memory(4, 0, 0)])
    )
    assert codes(trace) == {"P311": 2}
    assert trace.memory.allocated.tolist() == [100, -1, -1, 0]
    assert trace.memory.reserved.tolist() == [200, -1, -1, 0]


def test_bytes_that_nothing_moves_in_that_time_count_as_not_recorded() -> None:
    def copy(at: int, nbytes: int, bandwidth: float) -> Event:
        args = {"correlation": 900 + at, "bytes": nbytes, "memory bandwidth (GB/s)": bandwidth}
        return event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", (at, at + 10), (0, 9), stream=9, **args)

    # In 10 µs and one tick of the clock 32 TB/s move 352 MB; bandwidths written beside are never read.
    trace = make_plausible(
        read([*loop(3), copy(1000, 10**6, 1e9), copy(2000, 10**9, 1.0), copy(3000, -7, 1.0)])
    )
    assert codes(trace) == {"P312": 2}
    rows = trace.events.kind == EventKind.MEMCPY
    assert trace.events.nbytes[rows].tolist() == [10**6, -1, -1]


# --- strict --------------------------------------------------------------------------------


def test_strict_refuses_a_file_whose_rows_had_to_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", **one} for one in shifted(loop(20), -40)]}))
    assert codes(load(path).raw) == {"P305": 20}
    with pytest.raises(PartialError, match="P305 \\(20\\)"):
        load(path, Options(strict=True))


# --- host rows that outlive what is around them ---------------------------------------------


def op(name: str, start: int, took: int, cat: str = "cpu_op") -> Event:
    return event(cat, name, (start, start + took), (1, 1))


@pytest.mark.parametrize("cat", ["cpu_op", "cuda_runtime"])
def test_a_host_row_that_outlives_its_caller_ends_with_it(cat: str) -> None:
    """Four calls of 5 µs in parents of 40; the third is written with 10 s."""
    chrome = []
    for n in range(4):
        chrome += [op(f"parent{n}", 100 * n, 40), op("child", 100 * n + 10, 5 if n != 2 else 10**7, cat)]
    trace = make_plausible(read(chrome))
    odd = only(trace)
    assert (odd.code, odd.count, odd.done, odd.example) == ("P301", 1, Done.SET_RIGHT, "child")
    assert dict(odd.ns) == {"written_ns": 10**10, "taken_ns": 30_000}
    assert int(trace.events.end_ns.max()) == 340_000
    assert 240_000 in trace.events.end_ns[trace.events.is_kind(EventKind.CPU_OP, EventKind.RUNTIME)].tolist()


def test_an_operator_that_is_often_asynchronous_may_outlive_its_caller() -> None:
    chrome = []
    for n in range(4):
        chrome += [op(f"parent{n}", 10_000 * n, 40), op("remote", 10_000 * n + 10, 5_000)]
    assert codes(make_plausible(read(chrome))) == {}


def test_the_only_one_of_its_name_must_outlast_all_else_of_its_thread() -> None:
    plain = [op("parent", 0, 40), op("other", 9_000, 40)]
    assert codes(make_plausible(read([*plain, op("once", 10, 9_070)]))) == {}
    odd = only(make_plausible(read([*plain, op("once", 10, 9_071)])))
    assert (odd.code, odd.ns["taken_ns"]) == ("P301", 30_000)


def test_what_several_checks_say_under_one_code_is_one_finding() -> None:
    """A kernel that its queue refutes by 9.9 ms, and an operator that its caller does by a second."""
    chrome = [*loop(4), kernel("long", (128, 10_128), 90), call("cudaLaunchKernel", (125, 127), 90)]
    chrome += [kernel("next", (200, 210), 91), call("cudaLaunchKernel", (195, 197), 91)]
    chrome += [op("parent", 0, 40), op("once", 10, 10**6)]
    odd = only(make_plausible(read(chrome)))
    assert (odd.code, odd.count, odd.example, odd.ns["written_ns"]) == ("P301", 2, "once", 10**9)


def test_records_and_annotations_of_a_device_hours_away_come_back_with_it() -> None:
    """Everything on the device's process is three hours late; so are its sync record and its annotation."""
    late = 3 * HOUR
    chrome = loop(40)
    for one in chrome:
        if one["cat"] == "kernel":
            one["ts"] += late
    chrome += [
        event(
            "cuda_sync", "Event Sync", (late + 100, late + 120), (0, 7), stream=7, device=0, correlation=777
        ),
        event("gpu_user_annotation", "step", (late + 8, late + 400), (0, 99)),
    ]
    trace = make_plausible(read(chrome))
    odd = only(trace)
    assert (odd.code, odd.count, odd.ns["offset_ns"]) == ("P305", 40, -(late + 8) * 1000)
    ends = {int(kind): int(end) for kind, end in zip(trace.events.kind, trace.events.end_ns, strict=True)}
    assert ends[EventKind.SYNC] == 112_000
    assert ends[EventKind.GPU_ANNOTATION] == 392_000


def test_a_sync_record_stamped_by_the_host_stays_where_it_is() -> None:
    """The device alone is 40 us early; its annotation moves with it."""
    chrome = loop(40)
    for one in chrome:
        if one["cat"] == "kernel":
            one["ts"] -= 40
    chrome += [
        event("cuda_sync", "Event Sync", (100, 120), (0, 7), stream=7, device=0, correlation=777),
        event("gpu_user_annotation", "step", (60, 360), (0, 99)),
    ]
    before, after = read(chrome), make_plausible(read(chrome))
    moved = after.meta.origin_ns - before.meta.origin_ns
    offset = int(only(after).ns["offset_ns"] or 0)

    def start(trace: RawTrace, kind: EventKind) -> int:
        return int(trace.events.start_ns[trace.events.kind == kind][0]) + (moved if trace is after else 0)

    assert offset == 32_000
    assert start(after, EventKind.SYNC) == start(before, EventKind.SYNC)
    assert start(after, EventKind.GPU_ANNOTATION) == start(before, EventKind.GPU_ANNOTATION) + offset


def test_a_long_recording_may_hold_a_long_pause() -> None:
    """Ten minutes of work and a pause of two hours: a hundred recordings would be sixteen."""
    minute = 60_000_000
    chrome = [op("aten::mm", n * minute, 1_000_000) for n in range(11)]
    assert codes(make_plausible(read([*chrome, op("aten::mm", 130 * minute, 10)]))) == {}
    assert codes(make_plausible(read([*chrome, op("aten::mm", 10**6 * minute, 10)]))) == {"P303": 1}
