"""Work is counted by step: the operators that do it, what no operator launched, collectives, updates."""

from __future__ import annotations

from typing import Any

from stepcrit.link.workload import Times, WorkKey, work_of
from stepcrit.session import Options, Trace
from tests.builders import Event, event, trace

HOST, QUEUE = (1, 1), (0, 7)


def _work(chrome: list[Event]) -> dict[WorkKey, Times]:
    made = Trace(trace(chrome), Options())
    return work_of(made.raw, made.links, [step for step in made.steps if step.opens_at_boundary])


def _steps(count: int) -> list[Event]:
    """Step 0 and `count` steps of 100 µs after it that open at a boundary."""
    return [
        event("user_annotation", f"ProfilerStep#{i}", (100 * i, 100 * i + 100), HOST)
        for i in range(count + 1)
    ]


def _op(at: int, name: str = "aten::mm", length: int = 10, **args: Any) -> Event:
    return event("cpu_op", name, (at, at + length), HOST, **args)


def test_an_operator_counts_where_no_other_runs_within_it() -> None:
    inner = (
        [_op(at, "aten::linear", 30) for at in (110, 210)]
        + [event("user_annotation", "mark", (at, at + 20), HOST) for at in (111, 211)]
        + [_op(at) for at in (112, 212)]
    )
    work = _work([*_steps(2), _op(10), *inner])
    assert work == {WorkKey("op", "aten::mm"): Times(1, 1, 2)}


def test_operators_that_only_make_or_look_at_memory_are_no_work_and_hide_none() -> None:
    inner = [_op(110, "aten::addmm", 30), _op(115, "aten::as_strided", 5), _op(120, "aten::empty", 5)]
    wrapped = [
        _op(150, "autograd::engine::evaluate_function: TBackward0", 30),
        _op(155, "TBackward0"),
        _op(156, "aten::t", 3),
    ]
    work = _work([*_steps(1), _op(10), *inner, *wrapped])
    assert work == {
        WorkKey("op", "aten::addmm"): Times(1, 1, 1),
        WorkKey("step", "backward passes"): Times(1, 1, 1),
    }


def test_an_operator_that_launches_is_work_beside_the_one_within_it() -> None:
    call = event("cuda_runtime", "cudaLaunchKernel", (112, 114), HOST, correlation=1)
    kernel = event("kernel", "k", (120, 130), QUEUE, correlation=1, stream=7)
    work = _work([*_steps(1), _op(10), _op(110, "aten::outer", 40), call, _op(130, "aten::inner", 5), kernel])
    assert {key.name for key in work} == {"aten::outer", "aten::inner"}


def test_inputs_tell_operators_apart_and_one_spelling_of_a_type_is_used() -> None:
    rows = [
        _op(110, **{"Input Dims": [[8, 16]], "Input type": ["long int"]}),
        _op(130, **{"Input Dims": [[8, 16]], "Input type": ["long"]}),
        _op(150, **{"Input Dims": [[8, 17]], "Input type": ["long"]}),
        _op(170, "aten::add", **{"Input Dims": [[8, 17]], "Input type": ["long"]}),
    ]
    assert _work([*_steps(1), _op(10), *rows]) == {
        WorkKey("op", "aten::mm", "[[8,16]]", '["long"]'): Times(2, 2, 2),
        WorkKey("op", "aten::mm", "[[8,17]]", '["long"]'): Times(1, 1, 1),
        WorkKey("op", "aten::add", "[[8,17]]", '["long"]'): Times(1, 1, 1),
    }


def test_what_varies_from_step_to_step_is_a_range() -> None:
    work = _work(
        [
            *_steps(3),
            _op(10),
            _op(110),
            _op(120),
            _op(210),
            _op(310),
            _op(320),
            _op(330),
            _op(350, "aten::log"),
        ]
    )
    assert work == {
        WorkKey("op", "aten::mm"): Times(1, 3, 6),
        WorkKey("op", "aten::log"): Times(0, 1, 1),
    }
    assert not Times(1, 3, 6).meets(Times(4, 4, 4))
    assert Times(1, 3, 6).meets(Times(3, 3, 3))


def test_device_work_counts_by_itself_only_without_an_operator_and_a_copy_with_its_bytes() -> None:
    def call(at: int, correlation: int) -> Event:
        return event("cuda_runtime", "cudaLaunchKernel", (at, at + 2), HOST, correlation=correlation)

    device = [
        event("kernel", "k", (115, 120), QUEUE, correlation=1, stream=7),
        event("kernel", "own", (125, 128), QUEUE, correlation=2, stream=7),
        event("gpu_memcpy", "Memcpy HtoD", (135, 138), QUEUE, correlation=3, stream=7, bytes=64),
    ]
    work = _work([*_steps(1), _op(10), _op(110), call(112, 1), call(122, 2), call(132, 3), *device])
    assert work == {
        WorkKey("op", "aten::mm"): Times(1, 1, 1),
        WorkKey("device", "own"): Times(1, 1, 1),
        WorkKey("device", "Memcpy HtoD", "64"): Times(1, 1, 1),
    }


def test_a_collective_counts_by_its_bytes_type_and_group() -> None:
    args = {"Collective name": "allreduce", "dtype": "Float", "Process Group Name": "dp", "Group size": 8}
    kernel = event(
        "kernel",
        "ncclDevKernel_AllReduce",
        (120, 130),
        QUEUE,
        correlation=1,
        stream=7,
        **{"In msg nelems": 100, **args},
    )
    call = event("cuda_runtime", "cudaLaunchKernel", (112, 113), HOST, correlation=1)
    work = _work([*_steps(1), _op(10), _op(110), call, kernel])
    assert work[WorkKey("collective", "allreduce", "400", "Float", "dp of 8")] == Times(1, 1, 1)


def test_updates_and_backward_passes_are_counted() -> None:
    optimizer = [
        event("user_annotation", "Optimizer.step#SGD.step", (at + 60, at + 90), HOST) for at in (0, 100, 200)
    ]
    inside = [_op(at + 65, "aten::add_") for at in (0, 100, 200)]
    work = _work([*_steps(2), *optimizer, *inside])
    assert work[WorkKey("step", "updates")] == Times(1, 1, 2)


def test_a_trace_without_any_operator_has_no_work_of_operators() -> None:
    frames = [
        event("user_annotation", "ProfilerStep#0", (0, 100), HOST),
        event("user_annotation", "ProfilerStep#1", (100, 200), HOST),
    ]
    assert _work(frames) == {}
