"""Selectors on traces worked by hand: what each form means, what it counts, and what it refuses."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from stepcrit.errors import UsageError
from stepcrit.graph.select import Selection, select
from stepcrit.graph.selector import Selector, parse_selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.patterns import PATTERN_SECONDS, found_by, near_names
from stepcrit.session import Options, Trace
from tests.builders import event, trace

US = 1000
HOST, DEVICE = (1, 1), (0, 7)
CPP = "void gemm<int, (A)1 == 2>(std::array<char*, 3ul>)"


def op(name: str, start: int, end: int) -> dict[str, Any]:
    return event("cpu_op", name, (start, end), HOST)


def mark(name: str, start: int, end: int) -> dict[str, Any]:
    return event("user_annotation", name, (start, end), HOST)


def call(name: str, start: int, end: int, correlation: int) -> dict[str, Any]:
    return event("cuda_runtime", name, (start, end), HOST, correlation=correlation)


def kernel(name: str, start: int, end: int, correlation: int, stream: int = 7) -> dict[str, Any]:
    return event("kernel", name, (start, end), (0, stream), correlation=correlation, stream=stream)


def view_of(*chrome: dict[str, Any]) -> StepGraph:
    return Trace(trace(list(chrome)), Options()).view()


def step() -> StepGraph:
    """An operator around two that launch, one of its calls that launches nothing, an update, a second queue."""
    # host  aten::linear 0..30 { aten::t 2..6 { aten::as_strided 3..5 }, aten::addmm 8..28 { L1 10..14, L2 20..24 } }
    #       untracked 30..32, aten::linear 32..36 (launches nothing), Optimizer.step#SGD.step 40..60 { L3 44..50 }
    # s7    gemm 16..26, relu_elementwise 27..33, sgd_step 52..70;   s20 gemm2 25..31
    return view_of(
        op("aten::linear", 0, 30),
        op("aten::t", 2, 6),
        op("aten::as_strided", 3, 5),
        op("aten::addmm", 8, 28),
        call("cudaLaunchKernel", 10, 14, 1),
        call("cudaLaunchKernel", 16, 18, 2),
        call("cudaLaunchKernel", 20, 24, 3),
        op("aten::linear", 32, 36),
        mark("Optimizer.step#SGD.step", 40, 60),
        call("cudaLaunchKernelExC", 44, 50, 4),
        kernel("gemm", 16, 26, 1),
        kernel("relu_elementwise", 27, 33, 2),
        kernel(CPP, 25, 31, 3, stream=20),
        kernel("sgd_step", 52, 70, 4),
    )


def found(text: str, **how: Any) -> Selection:
    return select(step(), parse_selector(text), **how)


def summary(text: str, **how: Any) -> tuple[int, int, int]:
    """Device activities, host ranges with what is nested in them, µs in all."""
    s = found(text, **how)
    return s.device_count, s.host_count, s.total_ns // US


# --- parsing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "pattern"),
    [
        ("aten::mm", "name", "aten::mm"),
        ("re:^aten::", "re", "^aten::"),
        ("class:gemm", "class", "gemm"),
        ("class:launch latency", "class", "launch latency"),
        ("module:nn.Module: Linear_0", "module", "nn.Module: Linear_0"),
        ("stream:7", "stream", "7"),
        ("step:ProfilerStep#3", "step", "ProfilerStep#3"),
        ("line:train.py(12): step", "line", "train.py(12): step"),
        ("step::run", "name", "step::run"),  # a C++ name that begins like a prefix
        ("nccl:all_reduce", "name", "nccl:all_reduce"),
        (CPP, "name", CPP),
        ("", "name", ""),
    ],
)
def test_a_prefix_chooses_the_form_and_cpp_names_are_names(text: str, kind: str, pattern: str) -> None:
    selector = parse_selector(text)
    assert selector == Selector(kind, pattern)
    assert str(selector) == text


# --- names -------------------------------------------------------------------------------------


def test_kernel_is_selected_by_its_own_name() -> None:
    assert summary("gemm") == (1, 0, 10)


def test_exact_name_with_glob_characters_is_not_read_as_a_glob() -> None:
    view = view_of(
        op("a", 0, 20), call("l", 1, 2, 1), call("l", 3, 4, 2), kernel("k[1]*", 5, 9, 1), kernel("k1x", 10, 20, 2)
    )  # fmt: skip
    assert select(view, parse_selector("k[1]*")).total_ns == 4 * US  # as a glob it would be k1x
    assert select(view, parse_selector("k[1]?")).total_ns == 10 * US


def test_glob_is_case_sensitive_and_matches_whole_names() -> None:
    assert summary("relu*") == (1, 0, 6)
    for text in ("RELU*", "relu", "elementwise"):
        with pytest.raises(UsageError, match="nothing matches"):
            found(text)


def test_cpp_name_with_equals_colons_and_brackets_is_exact() -> None:
    assert summary(CPP) == (1, 0, 6)


def test_regular_expression_searches_anywhere() -> None:
    assert summary("re:elementwise$|^gemm$") == (2, 0, 16)


@pytest.mark.parametrize("pattern", ["(", "*a", "[z-a]", "(?P<x>a)(?P<x"])
def test_broken_regular_expression_is_wrong_use(pattern: str) -> None:
    with pytest.raises(UsageError, match="regular expression"):
        found(f"re:{pattern}")


def test_catastrophic_pattern_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PATTERN_SECONDS <= 2
    monkeypatch.setattr("stepcrit.link.patterns.PATTERN_SECONDS", 0.3)
    view = view_of(op("a" * 60 + "!", 0, 10), op("b", 10, 12))
    started = time.process_time()
    with pytest.raises(UsageError, match="too long"):
        select(view, parse_selector("re:^(a|a|aa)+$"))
    assert time.process_time() - started < 0.8


def test_time_limit_is_for_all_names_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many names, each of which takes less than the limit, must not add up to hours."""
    monkeypatch.setattr("stepcrit.link.patterns.PATTERN_SECONDS", 0.1)
    names = [f"{'a' * 14}{'!' * n}" for n in range(1, 25)]
    view = view_of(*(op(name, 2 * i, 2 * i + 1) for i, name in enumerate(names)))
    with pytest.raises(UsageError, match="too long"):
        select(view, parse_selector("re:^(a|a|aa)+$"))


@pytest.mark.parametrize(
    "pattern", ["a{99999999}", "(a{999}){999}", "((a{99}){99}){99}", "a{0,99999999}", "a{" + "9" * 3000 + "}"]
)
def test_pattern_that_would_fill_memory_is_wrong_use(pattern: str) -> None:
    with pytest.raises(UsageError, match="repeats too often"):
        found(f"re:{pattern}")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("^g.{2}m$", {"gemm"}),
        ("m{2}", {"gemm"}),
        ("(e.){2,3}", {"elementwise"}),
        (r"(.{9}){1}", {"elementwise"}),
    ],
)
def test_pattern_may_count(pattern: str, names: set[str]) -> None:
    every = ("elementwise", "gemm")
    assert {name for name, is_found in zip(every, found_by(every, pattern), strict=True) if is_found} == names


def test_deeply_nested_pattern_is_wrong_use() -> None:
    with pytest.raises(UsageError):
        found(f"re:{'(' * 5000}a{')' * 5000}")


# --- operators ---------------------------------------------------------------------------------


def test_operator_means_the_device_work_launched_anywhere_inside() -> None:
    """aten::linear launches through aten::addmm; its second call launches nothing, so that host time counts."""
    s = found("aten::linear")
    assert (s.device_count, s.host_count) == (3, 1)
    assert s.total_ns == (10 + 6 + 6 + 4) * US


def test_operator_that_launches_nothing_means_its_host_time_with_what_is_nested() -> None:
    assert summary("aten::t") == (0, 1, 4)  # itself 2, aten::as_strided 2


def test_nested_matches_count_once() -> None:
    """Both the outer and the inner operator match: the three kernels and the host times are a set."""
    s = found("aten::*")
    assert s.device_count == 3
    assert s.total_ns == (10 + 6 + 6 + 4 + 4) * US  # and aten::t with aten::as_strided, and the idle call


@pytest.mark.parametrize(
    ("side", "expected"),
    [("auto", (3, 0, 22)), ("device", (3, 0, 22)), ("host", (0, 1, 20)), ("both", (3, 1, 42))],
)
def test_side_chooses_device_work_host_time_or_both(side: str, expected: tuple[int, int, int]) -> None:
    assert summary("aten::addmm", side=side) == expected


def test_self_leaves_out_what_is_nested() -> None:
    assert summary("aten::addmm", self_only=True) == (3, 0, 22)  # it launches all three itself
    with pytest.raises(UsageError, match="nothing matches"):  # aten::linear launches nothing itself
        found("aten::linear", self_only=True, side="device")
    assert summary("aten::t", self_only=True) == (0, 1, 2)


def test_self_keeps_the_runtime_calls_that_an_operator_owns() -> None:
    assert summary("aten::addmm", self_only=True, side="host") == (0, 1, 20)


@pytest.mark.parametrize("side", ["host", "auto", "device", "both"])
def test_runtime_call_by_name_is_the_call_itself(side: str) -> None:
    assert summary("cudaLaunchKernel", side=side) == (0, 3, 10)


def test_annotation_is_selected_like_an_operator() -> None:
    assert summary("Optimizer.step#SGD.step") == (1, 0, 18)
    assert summary("Optimizer.step*", side="host") == (0, 1, 20)


# --- classes -----------------------------------------------------------------------------------


def test_class_by_label_is_on_the_device_where_it_has_anything_there() -> None:
    assert summary("class:gemm") == (2, 0, 16)
    assert summary("class:elementwise") == (1, 0, 6)
    assert summary("class:launch") == (0, 4, 16)
    assert summary("class:host op")[:2] == (0, 5)


def test_class_by_group_takes_all_of_its_classes() -> None:
    assert summary("class:compute") == (4, 0, 40)
    assert summary("class:host") == (0, 10, 60)  # with the untracked time


def test_optimizer_includes_its_host_half() -> None:
    assert summary("class:optimizer", side="both") == (1, 1, 18 + 14)  # the launch call is a launch


def test_optimizer_includes_its_host_half_without_being_asked() -> None:
    assert summary("class:optimizer") == (1, 1, 18 + 14)


def test_untracked_is_the_host_time_that_no_event_covers() -> None:
    s = found("class:untracked")
    assert s.total_ns == (2 + 4) * US
    assert (s.row == -1).all()
    assert (s.device_count, s.host_count) == (0, 0)


def test_gap_classes_select_gaps_and_no_activity() -> None:
    s, view = found("class:gap"), step()
    assert not s.node.size
    gaps = view.built.arrivals.gap_ns
    assert s.total_ns == gaps.sum() > 0
    assert ((gaps > 0) == s.gap_nodes).all()
    parts = [found(f"class:{label}") for label in ("launch latency", "stream gap")]
    assert sum(p.total_ns for p in parts) <= s.total_ns
    assert not (parts[0].gap_nodes & parts[1].gap_nodes).any()


def test_unknown_class_lists_the_classes() -> None:
    with pytest.raises(UsageError, match="no class 'gem'") as error:
        found("class:gem")
    assert "gemm" in str(error.value.do)
    with pytest.raises(UsageError, match="no class ''"):
        found("class:")


# --- places ------------------------------------------------------------------------------------


def test_stream_is_all_that_runs_on_it() -> None:
    assert summary("stream:7") == (3, 0, 34)
    assert summary("stream:20") == (1, 0, 6)


def test_stream_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing matches 'stream:99'"):
        found("stream:99")


def test_stream_that_does_not_exist_lists_the_streams() -> None:
    with pytest.raises(UsageError) as error:
        found("stream:99")
    assert "20" in str(error.value.do)


def steps() -> StepGraph:
    parts: list[dict[str, Any]] = []
    for k in range(3):
        at = 100 * k
        parts += [
            mark(f"ProfilerStep#{k + 3}", at, at + 60),
            op("aten::mm", at + 2, at + 20),
            call("cudaLaunchKernel", at + 5, at + 9, k + 1),
            kernel("gemm", at + 40, at + 80 + k, k + 1),
        ]
    return view_of(*parts)


@pytest.mark.parametrize("text", ["step:4", "step:ProfilerStep#4"])
def test_step_is_the_device_work_launched_in_its_window(text: str) -> None:
    s = select(steps(), parse_selector(text))
    assert (s.device_count, s.host_count, s.total_ns) == (1, 0, 41 * US)


def test_unknown_step_lists_the_steps() -> None:
    with pytest.raises(UsageError, match="no step '9'") as error:
        select(steps(), parse_selector("step:9"))
    assert "ProfilerStep#5" in str(error.value.do)


def frames() -> StepGraph:
    def python(name: str, start: int, end: int, number: int, parent: int | None) -> dict[str, Any]:
        args = {"Python id": number, "Python parent id": parent, "Python module id": 0}
        return event("python_function", name, (start, end), HOST, **args)

    return view_of(
        python("train.py(12): step", 0, 40, 1, None),
        python("nn.Module: Linear_0", 1, 25, 2, 1),
        op("aten::linear", 2, 24),
        call("cudaLaunchKernel", 5, 9, 1),
        op("aten::relu", 26, 36),
        call("cudaLaunchKernel", 27, 29, 2),
        kernel("gemm", 12, 22, 1),
        kernel("relu_elementwise", 32, 50, 2),
    )


def test_module_is_what_runs_and_is_launched_inside_it() -> None:
    s = select(frames(), parse_selector("module:*Linear*"))
    assert (s.device_count, s.total_ns) == (1, 10 * US)


def test_line_is_what_its_frame_launches() -> None:
    s = select(frames(), parse_selector("line:train.py(12)"))
    assert s.device_count >= 1
    assert s.total_ns >= 18 * US


@pytest.mark.parametrize(("text", "what"), [("module:x", "modules"), ("line:x", "Python lines")])
def test_without_stacks_modules_and_lines_are_refused_with_what_to_record(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"no {what}") as error:
        found(text)
    assert "with_stack" in str(error.value.do)


@pytest.mark.parametrize("text", ["module:nowhere", "line:nowhere.py"])
def test_unknown_module_or_line_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="nothing matches"):
        select(frames(), parse_selector(text))


# --- the path, and nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["gemm", "aten::addmm", "class:host", "class:gap", "class:compute", "*"])
def test_time_on_the_path_is_at_most_the_selected_time_and_the_step(text: str) -> None:
    s, view = found(text), step()
    assert 0 <= s.on_path_ns <= min(s.total_ns, view.step.elapsed_ns)


def test_host_device_and_gap_time_on_the_path_make_the_step() -> None:
    parts = [found(f"class:{group}").on_path_ns for group in ("host", "compute", "gap")]
    assert sum(parts) == step().step.elapsed_ns


def test_entries_never_hold_more_than_their_nodes() -> None:
    view = step()
    s = select(view, parse_selector("*"), side="both")
    held = np.bincount(s.node, s.length_ns, len(view.built.graph))
    assert (held <= view.built.graph.dur_ns).all()


def test_nothing_matched_offers_up_to_five_near_names_nearest_first() -> None:
    with pytest.raises(UsageError, match="nothing matches 'aten::adddmm'") as error:
        found("aten::adddmm")
    near = str(error.value.do).removeprefix("near names: ").split(", ")
    assert near[0] == "aten::addmm"
    assert 1 <= len(near) <= 5


def test_near_names_are_at_most_five_distinct_and_prefer_the_nearest() -> None:
    names = (*(f"aten::mm{i}" for i in range(9)), "zzz", "ATEN::MM")
    near = near_names("aten::mm", names)
    assert len(near) == len(set(near)) == 5
    assert near[0] == "ATEN::MM"
    assert near_names("conv", ("a_very_long_name_around_conv_in_the_middle",)) != []
    assert near_names("x", ()) == []


def test_near_names_can_be_selected() -> None:
    view = frames()
    with pytest.raises(UsageError) as error:
        select(view, parse_selector("nn.Module: Linear_1"))
    for name in str(error.value.do).removeprefix("near names: ").split(", "):
        select(view, parse_selector(name))


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("module:Linear_1", "modules: Linear_0"),
        ("module:zzz", "modules: "),
        ("line:zzz.py", "train.py(12): step"),
        ("kernel:gemm", "re:, class:, module:, stream:, step:, line:"),
        ("class:memset", "gemm"),
        ("class:hand-over", "launch latency"),
    ],
)
def test_nothing_matched_offers_what_the_kind_has(text: str, offers: str) -> None:
    with pytest.raises(UsageError, match="nothing matches") as error:
        select(frames(), parse_selector(text))
    assert offers in str(error.value.do)


def test_nested_matches_are_one_activity() -> None:
    s = found("aten::t*", side="host")
    assert len(set(s.activity.tolist())) == 1
    assert len(set(s.row.tolist())) == 2


def test_comm_and_optimizer_by_class_have_one_side_on_demand() -> None:
    assert summary("class:optimizer", side="device") == (1, 0, 18)
    assert summary("class:optimizer", side="host") == (0, 1, 14)
