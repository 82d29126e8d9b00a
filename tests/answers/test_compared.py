"""What a comparison comes to, in the order of triage, and what it says may have made the difference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from scripts.simulator import training as t
from scripts.simulator.change import Change
from stepcrit.analyses.judgement import Outcome, Predicted
from stepcrit.answers.compared import Asked, Compared, Conclusion, compared
from stepcrit.answers.diffwords import hypothesis_words, work_notes
from stepcrit.graph.replay import Saving
from stepcrit.link.workload import Times, WorkKey, flops_of
from stepcrit.model.trace import Device
from stepcrit.report.values import sentence_text
from stepcrit.session import Options, Trace, load
from tests.pairs import written

RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"
GEMM_SLOWER = Change("kernel", t.GEMM_BACKWARD, 108)


def _against(base: Trace, new: Trace, asked: Asked | None = None) -> Compared:
    return compared([base.view()], [new.view()], asked)


def _simulated(
    folder: Path, scenario: str, base: tuple[Change, ...] = (), new: tuple[Change, ...] = (), *,
    params: Mapping[str, int] | None = None,
) -> Compared:  # fmt: skip
    """A scenario with changes really made, on two seeds, so that noise is real too."""
    before = load(written(folder / "base.json.gz", scenario, base))
    after = load(written(folder / "new.json.gz", scenario, new, params, seed=2))
    return _against(before, after)


def _first(told: Compared) -> tuple[str, Saving]:
    first = told.hypotheses[0]
    assert first.saving is not None
    return first.name, first.saving


# --- simulated pairs with one known change -----------------------------------------------------


def test_a_kernel_that_takes_8_percent_longer_is_found_with_what_it_costs(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "device_bound", new=(GEMM_SLOWER,))
    assert told.conclusion == Conclusion.REGRESSION
    name, saving = _first(told)
    assert name == "aten::mm"
    shift = told.balance.delta_ns
    assert saving.low_ns == pytest.approx(shift, rel=0.05)
    assert saving.high_ns == pytest.approx(shift, rel=0.05)
    assert len(told.hypotheses) == 1


def test_a_new_wait_is_found_although_it_takes_no_time_itself(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "item_sync", base=(Change("remove_sync"),))
    assert told.conclusion == Conclusion.REGRESSION
    first = told.hypotheses[0]
    assert (first.name, first.waits) == ("cudaMemcpyAsync", 1)
    assert first.saving is not None
    assert first.saving.low_ns == pytest.approx(told.balance.delta_ns, rel=0.1)


def test_communication_that_takes_longer_is_found_by_its_collective(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "ddp_tail", new=(Change("transfer", "", 200),))
    assert told.conclusion == Conclusion.REGRESSION
    assert [one.name for one in told.hypotheses] == ["allreduce", "allreduce"]
    times = [side.times_ns or {} for side in (told.base, told.new)]
    assert times[1]["comm alone"] - times[0]["comm alone"] == pytest.approx(told.balance.delta_ns, rel=0.05)


def test_launch_calls_that_take_longer_are_found(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "host_bound", new=(Change("launch", "cudaLaunchKernel", 150),))
    name, saving = _first(told)
    assert (told.conclusion, name) == (Conclusion.REGRESSION, "cudaLaunchKernel")
    assert saving.low_ns == pytest.approx(told.balance.delta_ns, rel=0.05)


def test_a_slower_clock_is_told_from_a_slower_operator(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "device_bound", new=(Change("kernel", "", 108),))
    (first,) = told.hypotheses
    assert first.evenly == pytest.approx(0.08, abs=0.01)
    assert first.saving is not None
    assert first.saving.low_ns == pytest.approx(told.balance.delta_ns, rel=0.05)


def test_another_seed_is_no_change(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "device_bound")
    assert (told.conclusion, told.hypotheses) == (Conclusion.NO_CHANGE, ())


def test_more_work_replaces_the_verdict_and_is_counted(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "device_bound", params={"layers": 4})
    assert (told.conclusion, told.hypotheses) == (Conclusion.WORK, ())
    changes = {c.key.name: (c.base.low, c.new.low) for c in told.work_changes}
    assert changes["aten::mm"] == (6, 8)
    assert told.changed_work_ns == pytest.approx(told.balance.delta_ns, rel=0.02)


def test_what_got_faster_is_looked_for_in_the_base(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "device_bound", base=(GEMM_SLOWER,))
    name, saving = _first(told)
    assert (told.conclusion, name) == (Conclusion.IMPROVEMENT, "aten::mm")
    assert saving.low_ns == pytest.approx(-told.balance.delta_ns, rel=0.05)


# --- recorded pairs: what was really changed ---------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        ("wait_removed", "wait_for_logger"),
        ("python_halved", "format_log"),
        ("loader_halved", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        ("loader_hidden", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    ],
)
def test_the_first_hypothesis_names_what_was_changed(pair: str, name: str) -> None:
    told = _against(*(load(RECORDED / f"{pair}_{word}.json.gz") for word in ("before", "after")))
    assert told.conclusion == Conclusion.IMPROVEMENT
    first = told.hypotheses[0]
    assert first.name == name
    assert first.delta_ns == pytest.approx(told.balance.delta_ns, rel=0.1)
    if first.saving is None:  # a wait for loader workers: how much of it is production is in no trace
        assert name.startswith("enumerate")
    else:
        assert first.saving.low_ns == pytest.approx(-told.balance.delta_ns, rel=0.1)


@pytest.mark.parametrize(
    ("pair", "names"),
    [
        ("op_halved", {"aten::lgamma"}),
        ("small_ops_halved", {"aten::neg_"}),
        ("copies_removed", {"aten::copy_"}),
        ("barrier_removed", {"c10d::barrier"}),
    ],
)
def test_work_that_was_changed_is_named_and_accounts_for_the_difference(pair: str, names: set[str]) -> None:
    told = _against(*(load(RECORDED / f"{pair}_{word}.json.gz") for word in ("before", "after")))
    assert told.conclusion == Conclusion.WORK
    assert {change.key.name for change in told.work_changes} == names


# --- triage ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return load(written(tmp_path_factory.mktemp("job") / "t.json.gz", "device_bound"))


def _with(made: Trace, **meta: object) -> Trace:
    """The same trace with another label."""
    digest = repr(sorted(meta.items(), key=str))
    raw = replace(made.raw, meta=replace(made.raw.meta, sha256=digest, **meta))  # type: ignore[arg-type]
    return Trace(raw, Options())


@pytest.mark.parametrize(
    ("meta", "conclusion"),
    [
        ({"options": frozenset({"with_stack"}), "world_size": 4, "devices": ()}, Conclusion.CAPTURE),
        ({"world_size": 4}, Conclusion.CONFIGURATION),
        ({"devices": (Device(0, "another GPU"),)}, Conclusion.CONFIGURATION),
        ({"versions": {"cuda_runtime_version": "13"}}, Conclusion.NO_CHANGE),
        ({}, Conclusion.NO_CHANGE),
    ],
)
def test_the_first_thing_that_differs_decides(
    job: Trace, meta: dict[str, object], conclusion: Conclusion
) -> None:
    told = _against(_with(job, world_size=8), _with(job, **{"world_size": 8, "notes": (), **meta}))
    assert told.conclusion == conclusion


def test_the_same_file_is_the_same_recording_and_differs_in_nothing(job: Trace) -> None:
    told = _against(job, job)
    assert told.conclusion == Conclusion.SAME
    assert {d.path_ns for d in told.balance.deltas} == {0}
    assert (told.shift.ratio, told.shift.shift_ns, told.work_changes, told.differences) == (
        1, 0, (), told.differences,
    )  # fmt: skip
    assert not any(one.is_known for one in told.differences)


def test_few_steps_give_numbers_and_no_verdict(tmp_path: Path) -> None:
    short = [
        load(written(tmp_path / f"{seed}.json.gz", "device_bound", params={"steps": 4}, seed=seed))
        for seed in (1, 2)
    ]
    told = _against(*short)
    assert (told.conclusion, told.hypotheses) == (Conclusion.TOO_FEW, ())
    assert told.shift.ratio == pytest.approx(1, rel=0.05)


def test_three_runs_a_side_are_compared_by_run(tmp_path: Path) -> None:
    sides = [
        [
            load(written(tmp_path / f"{word}{seed}.json.gz", "device_bound", changes, seed=seed)).view()
            for seed in seeds
        ]
        for word, changes, seeds in (("a", (), (1, 2, 3)), ("b", (GEMM_SLOWER,), (4, 5, 6)))
    ]
    told = compared(*sides)
    assert told.by_runs
    assert len(told.shift.base.values_ns) == len(told.shift.new.values_ns) == 3
    assert told.conclusion == Conclusion.REGRESSION
    assert sum(d.path_ns for d in told.balance.deltas) == told.balance.delta_ns
    fewer = compared(sides[0][:2], sides[1])
    assert not fewer.by_runs
    assert len(fewer.shift.base.values_ns) == 18


def test_runs_of_the_base_must_be_alike_too(job: Trace) -> None:
    base = [_with(job, world_size=8, notes=("1",)), _with(job, world_size=4)]
    told = compared([one.view() for one in base], [_with(job, world_size=8).view()])
    assert told.conclusion == Conclusion.CONFIGURATION
    words = [sentence_text(one.what) for one in told.differences if one.is_known]
    assert words == ["world size: 8 in one run of base, 4 in another"]


def test_work_of_every_run_counts(job: Trace, tmp_path: Path) -> None:
    more = load(written(tmp_path / "more.json.gz", "device_bound", params={"layers": 4}, seed=2))
    told = compared([job.view()], [_with(job).view(), more.view()])
    assert told.conclusion == Conclusion.WORK
    assert "aten::mm" in {change.key.name for change in told.work_changes}


# --- predictions -------------------------------------------------------------------------------


def _predicted(low: int, high: int, ceiling: int, **more: object) -> Predicted:
    return Predicted(
        "", "t.json.gz", 1, low, high, ceiling, str(more.get("boundary", "device")), "--shrink x=0.5"
    )


@pytest.mark.parametrize(
    ("low", "high", "ceiling", "outcome"),
    [
        (60_000, 100_000, 150_000, Outcome.CONSISTENT),
        (200_000, 300_000, 400_000, Outcome.SMALLER),
        (10_000, 20_000, 900_000, Outcome.LARGER),
        (10_000, 20_000, 30_000, Outcome.BEYOND),
    ],
)
def test_a_prediction_is_judged_by_the_observed_saving(
    tmp_path: Path, low: int, high: int, ceiling: int, outcome: Outcome
) -> None:
    """Kernels 8 % shorter save about 80 µs of this step."""
    told = _simulated(tmp_path, "device_bound", base=(GEMM_SLOWER,))
    judged = Compared(told.base, told.new, Asked(predicted=_predicted(low, high, ceiling))).judged
    assert judged is not None
    assert 50_000 < judged.low_ns < judged.high_ns < 110_000
    assert (judged.outcome, judged.is_of_base) == (outcome, False)


def test_a_prediction_for_another_boundary_is_not_judged(job: Trace) -> None:
    told = _against(job, _with(job), Asked(predicted=_predicted(1, 2, 3, boundary="update")))
    assert told.judged is not None
    assert told.judged.outcome is None
    assert "update" in told.judged.why_not


# --- words -------------------------------------------------------------------------------------


def test_no_cause_is_claimed(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "item_sync", base=(Change("remove_sync"),))
    for one in told.hypotheses:
        words = sentence_text(hypothesis_words(told, one))
        assert "because" not in words
        assert "if it is the cause" in words
        assert "refuted if" in words


def test_far_more_work_is_told_as_a_factor_and_not_in_thousands_of_percent() -> None:
    def told(before: int, after: int) -> str:
        works = [{WorkKey("op", "aten::mm", f"[[{n},1],[1,1]]"): Times(1, 1, 1)} for n in (before, after)]
        sides = [Mock(first=Mock(fingerprint=Mock(flops=flops_of(work, 1)))) for work in works]
        lines = work_notes(Mock(base=sides[0], new=sides[1], changed_work_ns=None))
        return " ".join(sentence_text(lines[1]).split())

    assert told(100, 150).startswith("up to about 50.0 % more time is to be expected")
    assert told(100, 50).startswith("up to about 50.0 % less time is to be expected")
    assert told(100, 6000).startswith("up to about 60 × the time is to be expected")
