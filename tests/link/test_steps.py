"""Steps of a loop: what marks them, where they end, which of them count, and what is refused; times in µs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepcrit.errors import UsageError
from stepcrit.link.linker import link
from stepcrit.link.steps import StepOptions, boundary_rows, find_steps
from stepcrit.model.steps import Boundary, Steps
from tests.builders import trace

Event = dict[str, Any]
PARTS = json.loads((Path(__file__).parents[1] / "golden" / "parts.json").read_text(encoding="utf-8"))
A04 = next(case for case in PARTS["steps"] if case["id"] == "A04")
A05 = next(case for case in PARTS["steps"] if case["id"] == "A05")
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
FIRST = "first recorded step: no boundary before it"


def host(
    name: str, start: int, end: int, *, tid: int = 1, pid: int = 1, cat: str = "user_annotation"
) -> Event:
    return {"cat": cat, "name": name, "ts": start, "dur": end - start, "pid": pid, "tid": tid}


def call(start: int, end: int, corr: int, name: str = "cudaLaunchKernel") -> Event:
    return {**host(name, start, end, cat="cuda_runtime"), "args": {"correlation": corr}}


def kernel(start: int, end: int, corr: int, name: str = "k", stream: int = 7) -> Event:
    args = {"correlation": corr, "stream": stream}
    return {
        "cat": "kernel",
        "name": name,
        "ts": start,
        "dur": end - start,
        "pid": 0,
        "tid": stream,
        "args": args,
    }


def launched(at: int, start: int, end: int, corr: int) -> list[Event]:
    """A launch call of 1 and its kernel."""
    return [call(at, at + 1, corr), kernel(start, end, corr)]


def steps(*chrome: Event, **options: Any) -> Steps:
    """The steps of a trace."""
    raw = trace(chrome)
    return find_steps(raw.events, link(raw), StepOptions(**options))


def us(found: Steps, *names: str) -> list[tuple[int, ...]]:
    """Attributes of each step, in µs."""
    return [tuple(getattr(step, name) // 1000 for name in names) for step in found]


def loop(count: int, *, kernels: int = 1, period: int = 20) -> list[Event]:
    """`count` profiler steps of `period`; each launches `kernels` kernels that end 5 after the step."""
    chrome: list[Event] = []
    for i in range(count):
        at = period * i
        chrome.append(host(f"ProfilerStep#{i}", at, at + period))
        for j in range(kernels):
            end = at + period + 5 - (kernels - 1 - j)
            chrome += launched(at + 2 + 2 * j, end - 1, end, 100 * i + j + 1)
    return chrome


# --- boundaries --------------------------------------------------------------------------------


def four_boundaries() -> list[Event]:
    """One step: three launches, the last one the optimizer's; a copy of the second launch ends last."""
    given = A04["given"]
    names = ("fwd", "bwd", "opt")
    return [
        host("ProfilerStep#1", *given["step_annotation"]),
        host("Optimizer.step#SGD.step", 92, 96),
        *(call(*span, i) for i, span in enumerate(given["launches"], 1)),
        *(kernel(*span, i, names[i - 1]) for i, span in enumerate(given["device"], 1)),
        {**kernel(*given["trailing_copy"], 2, "Memcpy DtoH", stream=20), "cat": "gpu_memcpy"},
    ]


@pytest.mark.parametrize("boundary", list(Boundary))
def test_one_step_has_four_boundaries(boundary: Boundary) -> None:
    (step,) = steps(*four_boundaries(), boundary=boundary)
    assert step.end_ns == A04["expect"][f"{boundary}_end"] * 1000
    assert step.latency_ns == step.end_ns - step.host_start_ns


@pytest.mark.parametrize(
    ("boundary", "rows"),
    [("host", []), ("launch", []), ("device", ["Memcpy DtoH", "bwd", "fwd", "opt"]), ("update", ["opt"])],
)
def test_boundary_requires_its_own_device_work_only(boundary: str, rows: list[str]) -> None:
    raw = trace(four_boundaries())
    links = link(raw)
    found = find_steps(raw.events, links, StepOptions(Boundary(boundary)))
    needed = boundary_rows(raw.events, links, found, found[0])
    assert sorted(raw.events.name_of(row) for row in needed.tolist()) == rows


def test_steps_tile_time_from_boundary_to_boundary() -> None:
    found = steps(*loop(4))
    assert us(found, "start_ns", "end_ns", "host_start_ns", "host_end_ns") == [
        (0, 25, 0, 20), (25, 45, 20, 40), (45, 65, 40, 60), (65, 85, 60, 80),
    ]  # fmt: skip
    assert (found.source, found.boundary) == ("ProfilerStep", Boundary.DEVICE)
    assert found.periods() == (20_000, 20_000, 20_000)


def test_device_work_belongs_to_the_step_that_launched_it_however_late_it_ran() -> None:
    found = steps(*loop(2), *launched(5, 200, 230, 999))
    assert us(found, "end_ns") == [(230,), (230,)]
    assert [step.device_count for step in found] == [2, 1]


def test_step_without_device_work_ends_with_its_host_window() -> None:
    found = steps(*loop(2), host("ProfilerStep#2", 40, 70))
    assert us(found, "start_ns", "end_ns")[-1] == (45, 70)


def test_step_whose_boundary_lies_before_the_one_before_is_empty_and_says_so() -> None:
    found = steps(*loop(2), *launched(25, 40, 90, 999), host("ProfilerStep#2", 40, 70))
    assert us(found, "start_ns", "end_ns")[-1] == (90, 90)
    assert (found[-1].used, found[-1].why_not) == (False, "no work of its own before its boundary")


def test_trace_without_device_work_ends_its_steps_on_the_host() -> None:
    found = steps(*(host(f"ProfilerStep#{i}", 10 * i, 10 * i + 9) for i in range(3)))
    assert found.boundary == Boundary.HOST
    assert found.boundary_why == "no launched device work in this trace: a step ends with its host window"
    assert us(found, "start_ns", "end_ns") == [(0, 9), (9, 19), (19, 29)]


def test_device_boundary_without_device_work_is_the_hosts_and_is_noted() -> None:
    found = steps(host("ProfilerStep#0", 0, 9), host("ProfilerStep#1", 10, 19), boundary=Boundary.DEVICE)
    assert us(found, "end_ns") == [(9,), (19,)]
    assert "no device work with a launch: the boundary is the host's" in found.notes


# --- marks -------------------------------------------------------------------------------------


def test_profiler_step_inside_another_is_no_step_of_its_own() -> None:
    inner = [
        host("ProfilerStep#0", 0, 20, tid=2),
        host("ProfilerStep#0", 3, 18),
        host("ProfilerStep#7", 25, 35),
    ]
    assert [step.label for step in steps(*loop(2), *inner)] == ["ProfilerStep#0", "ProfilerStep#1"]


def test_empty_profiler_step_is_no_step() -> None:
    assert [step.label for step in steps(*loop(2), host("ProfilerStep#2", 40, 40))] == [
        "ProfilerStep#0",
        "ProfilerStep#1",
    ]


def test_marks_of_another_process_still_mark_the_steps() -> None:
    found = steps(*({**e, "pid": 9} if e["name"].startswith("ProfilerStep") else e for e in loop(3)))
    assert us(found, "start_ns", "end_ns") == [(0, 25), (25, 45), (45, 65)]
    assert [step.device_count for step in found] == [1, 1, 1]


def test_marks_are_taken_in_the_order_profiler_optimizer_loader_capture() -> None:
    work = [host("aten::mm", 1, 99, cat="cpu_op")]
    loader = [host(LOADER, 30 * i, 30 * i + 5) for i in range(3)]
    updates = [host("Optimizer.step#SGD.step", 30 * i + 20, 30 * i + 25) for i in range(3)]
    marks = [host("ProfilerStep#4", 0, 50), host("ProfilerStep#5", 50, 99)]
    assert steps(*work, *loader, *updates, *marks).source == "ProfilerStep"
    assert steps(*work, *loader, *updates).source == "optimizer"
    assert steps(*work, *loader, *updates[:1]).source == "DataLoader"
    assert steps(*work, *loader[:1], *updates[:1]).source == "capture"
    assert steps(*work).source == "capture"


def test_update_runs_from_the_end_of_one_optimizer_step_to_the_end_of_the_next() -> None:
    found = steps(
        host("aten::mm", 2, 9, cat="cpu_op"),
        *(host("Optimizer.step#SGD.step", 30 * i + 20, 30 * i + 25) for i in range(3)),
    )
    assert [step.label for step in found] == ["update 1", "update 2", "update 3"]
    assert us(found, "host_start_ns", "host_end_ns") == [(2, 25), (25, 55), (55, 85)]


def test_batch_runs_from_one_request_to_the_next_and_the_last_to_the_end_of_the_thread() -> None:
    found = steps(
        *(host(LOADER, 30 * i, 30 * i + 5) for i in range(3)), host("aten::mm", 70, 88, cat="cpu_op")
    )
    assert us(found, "host_start_ns", "host_end_ns") == [(0, 30), (30, 60), (60, 88)]
    assert [step.label for step in found] == ["batch 1", "batch 2", "batch 3"]


def test_whole_capture_leaves_out_the_profilers_own_closing_synchronize() -> None:
    chrome = [
        host("aten::mm", 5, 30, cat="cpu_op"),
        *launched(10, 20, 40, 1),
        call(50, 90, 2, "cudaDeviceSynchronize"),
    ]
    for boundary, end in ((Boundary.HOST, 30), (None, 40)):
        (step,) = steps(*chrome, boundary=boundary)
        assert (step.label, step.host_start_ns, step.end_ns) == ("whole capture", 5_000, end * 1000)
        assert (step.used, step.opens_at_boundary) == (True, False)


def test_the_host_window_of_a_whole_capture_holds_the_work_of_every_thread() -> None:
    chrome = [host(f"op{n}", 4 * n, 4 * n + 3, cat="cpu_op") for n in range(5)]
    (step,) = steps(*chrome, host("backward", 30, 60, tid=2, cat="cpu_op"), *launched(10, 20, 90, 1))
    assert (step.host_start_ns, step.host_end_ns, step.end_ns) == (0, 60_000, 90_000)
    (alone,) = steps(*chrome, host("backward", 30, 60, tid=2, cat="cpu_op"), boundary=Boundary.HOST)
    assert (alone.host_end_ns, alone.end_ns) == (60_000, 19_000)


def test_whole_capture_counts_every_launched_activity_and_needs_orphans_too() -> None:
    raw = trace([host("aten::mm", 5, 30, cat="cpu_op"), *launched(10, 20, 40, 1), kernel(0, 4, 77, "orphan")])
    links = link(raw)
    found = find_steps(raw.events, links)
    assert found[0].device_count == 1
    assert len(boundary_rows(raw.events, links, found, found[0])) == 2
    assert found.notes == ("one window, no distribution",)


def test_steps_may_be_marked_by_a_range_of_the_users_own() -> None:
    found = steps(*loop(4), host("epoch 1", 0, 41), host("epoch 2", 41, 80), step_regex="^epoch")
    assert found.source == "ranges"
    assert [step.label for step in found] == ["epoch 1", "epoch 2"]
    assert us(found, "end_ns") == [(45,), (85,)]


# --- which steps count -------------------------------------------------------------------------


def cut(*chrome: Event) -> list[str]:
    """Why the steps of a file that was cut off do not count."""
    raw = trace(chrome)
    return [step.why_not for step in find_steps(raw.events, link(raw), is_cut=True)]


def test_of_a_file_that_was_cut_off_the_last_step_is_not_whole() -> None:
    assert cut(*loop(4)) == [FIRST, "", "", "incomplete: the file stops before its end"]
    assert [step.why_not for step in steps(*loop(4))] == [FIRST, "", "", ""]


def test_a_cut_that_took_the_device_work_of_most_steps_leaves_those_that_have_theirs() -> None:
    """Operators come first in a file: five steps of the host, and the launches and kernels of two."""
    chrome = [event for event in loop(5, kernels=3) if event.get("args", {}).get("correlation", 0) < 200]
    gone = "incomplete: 0 device activities, usually 3"
    assert cut(*chrome) == [FIRST, "", gone, gone, gone]


def test_first_step_has_no_period_and_is_set_aside() -> None:
    found = steps(*loop(5))
    assert [step.used for step in found] == [False, True, True, True, True]
    assert found[0].why_not == FIRST
    assert [step.opens_at_boundary for step in found] == [False, True, True, True, True]


def test_step_with_less_than_half_of_the_usual_device_work_is_incomplete() -> None:
    short = [e for e in loop(5, kernels=4) if e.get("args", {}).get("correlation", 0) not in {402, 403, 404}]
    found = steps(*short)
    assert [step.used for step in found] == [False, True, True, True, False]
    assert found[-1].why_not == "incomplete: 1 device activities, usually 4"


def test_step_with_half_of_the_usual_device_work_counts() -> None:
    chrome = [e for e in loop(5, kernels=4) if e.get("args", {}).get("correlation", 0) not in {401, 402}]
    assert steps(*chrome)[-1].used


def slow(*periods: int) -> list[Event]:
    """Profiler steps on the host with these periods; the first one opens the trace."""
    ends = [sum(periods[: i + 1]) for i in range(len(periods))]
    return [
        host(f"ProfilerStep#{i}", end - p, end) for i, (p, end) in enumerate(zip(periods, ends, strict=True))
    ]


def test_warm_up_is_set_aside_and_outliers_stay_in_the_sample() -> None:
    found = steps(*slow(50, 900, 310, 102, 100, 101, 180, 99, 100))
    assert [step.index for step in found if step.used] == [3, 4, 5, 6, 7, 8]
    assert {step.index: step.why_not for step in found if step.why_not} == {
        0: FIRST,
        1: "warm-up: before the first steady period",
        2: "warm-up: before the first steady period",
        6: "outlier: outside the steady band, kept in the sample",
    }


def test_representative_is_the_lower_median_of_the_used_steps() -> None:
    found = steps(*slow(50, 103, 100, 101, 102))
    assert found.median().elapsed_ns == 101_000


def test_without_a_steady_state_every_step_with_a_period_stays_and_that_is_noted() -> None:
    found = steps(*slow(50, 500, 300, 200, 150))
    assert found.steady is not None
    assert found.steady.first is None
    assert found.notes == ("no steady state: 4 periods differ too much for one to stand for the others",)


def test_fewer_than_three_steady_steps_are_no_distribution() -> None:
    (note,) = steps(*slow(50, 100, 100)).notes
    assert "3 steady steps needed for a distribution" in note


# --- updates -----------------------------------------------------------------------------------


def accumulation(*, every: int = 2, count: int = 6) -> list[Event]:
    """Profiler steps of 20; each `every`th one ends in an update whose kernel ends 4 after it."""
    chrome: list[Event] = []
    for i in range(count):
        at = 20 * i
        chrome += [host(f"ProfilerStep#{i}", at, at + 20), *launched(at + 2, at + 6, at + 12, 10 * i + 1)]
        if i % every == every - 1:
            chrome += [
                host("Optimizer.step#SGD.step", at + 14, at + 18),
                *launched(at + 15, at + 20, at + 24, 10 * i + 2),
            ]
    return chrome


def test_update_boundary_is_chosen_where_an_update_spans_several_profiler_steps() -> None:
    found = steps(*accumulation())
    assert (found.boundary, found.source) == (Boundary.UPDATE, "optimizer")
    assert found.boundary_why == "an update spans several profiler steps"
    assert us(found, "end_ns") == [(44,), (84,), (124,)]


def test_device_boundary_is_chosen_where_every_profiler_step_updates() -> None:
    assert steps(*accumulation(every=1)).boundary == Boundary.DEVICE


def test_asked_for_boundary_is_kept_where_an_update_spans_several_profiler_steps() -> None:
    found = steps(*accumulation(), boundary=Boundary.DEVICE)
    assert (found.boundary, found.boundary_why, len(found)) == (Boundary.DEVICE, "as asked for", 6)


def test_microbatches_are_counted_through_the_golden_markers() -> None:
    given = A05["given"]
    chrome = [
        *(host("aten::linear", at - 8, at - 2, cat="cpu_op") for at in given["backward_roots"]),
        *(
            host("autograd::engine::evaluate_function: MmBackward0", at, at + 5, tid=2, cat="cpu_op")
            for at in given["backward_roots"]
        ),
        *(host("Optimizer.step#SGD.step", at - 5, at) for at in given["optimizer_ends"]),
    ]
    assert list(steps(*chrome).microbatches) == A05["expect"]["microbatches"]


def adversaries() -> list[Event]:
    """Two optimizers a cycle: the discriminator's, then the generator's."""
    chrome: list[Event] = []
    for i in range(3):
        at = 40 * i
        chrome += [
            host("Optimizer.step#Disc.step", at + 10, at + 15), *launched(at + 11, at + 16, at + 20, 10 * i + 1),
            host("Optimizer.step#Gen.step", at + 25, at + 30), *launched(at + 26, at + 31, at + 39, 10 * i + 2),
        ]  # fmt: skip
    return chrome


def test_of_several_optimizers_the_one_that_closes_the_cycle_marks_the_steps() -> None:
    assert us(steps(*adversaries()), "host_end_ns") == [(30,), (70,), (110,)]


def test_optimizer_regex_names_another_optimizer() -> None:
    found = steps(*adversaries(), optimizer_regex="Disc", boundary=Boundary.UPDATE)
    assert us(found, "host_end_ns", "end_ns") == [(15, 20), (55, 60), (95, 100)]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what", "do"),
    [
        (
            {"boundary": Boundary.UPDATE},
            "no Optimizer.step range in this trace; the update boundary is unknown",
            "use --boundary device or --optimizer-regex",
        ),
        (
            {"step_regex": "^nope"},
            "no range matches --step-regex '^nope'",
            "give a pattern of a range in the trace",
        ),
        (
            {"optimizer_regex": "^no"},
            "no range matches --optimizer-regex '^no'",
            "give a pattern of a range in the trace",
        ),
    ],
)
def test_what_the_trace_cannot_answer_is_refused_with_a_way_out(
    options: dict[str, Any], what: str, do: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        steps(*loop(3), **options)
    assert (refusal.value.what, refusal.value.do) == (what, do)


@pytest.mark.parametrize("option", ["step_regex", "optimizer_regex"])
@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("^(a|a|aa)+$", "takes too long"),
        ("(", "not a regular expression"),
        ("(" * 3000, "nested too deeply"),
        ("(" * 5000, "characters"),
    ],
)
def test_pattern_that_cannot_be_used_is_wrong_use_in_limited_time(
    monkeypatch: pytest.MonkeyPatch, option: str, pattern: str, says: str
) -> None:
    monkeypatch.setattr("stepcrit.link.patterns.PATTERN_SECONDS", 0.2)
    with pytest.raises(UsageError, match=says):
        steps(host("a" * 60 + "!", 0, 10), host("b", 10, 12), **{option: pattern})
