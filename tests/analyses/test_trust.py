"""Trust: path time by evidence, and starts that are explained; times in µs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcrit.analyses import trust
from stepcrit.analyses.trust import Trust
from stepcrit.session import Options, Trace, load
from tests.builders import event, trace

FILES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))


def measured(b_start: int, *, strict: bool = False) -> Trust:
    """A and b on two queues without records; b starts at `b_start`, long after its launch."""
    # host  |op 0..2 la 2..4   lb 6..10 |        path by timing: op la, gap 4-5, a 5-50, gap 50.., b
    # s7        [a 5..........50]
    # s20                        [b b_start..+48]
    chrome = [
        event("cpu_op", "op", (0, 12), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "lb", (6, 10), (1, 1), correlation=2),
        event("kernel", "a", (5, 50), (0, 7), correlation=1, stream=7),
        event("kernel", "b", (b_start, b_start + 48), (0, 20), correlation=2, stream=20),
    ]
    return trust.analyze(Trace(trace(chrome), Options(strict=strict)).view())


def test_time_entered_by_coincidence_alone_is_timing() -> None:
    """Of 100: the opening 4, a and its gap 46 by id, b and its gap 50 by timing."""
    found = measured(52)
    assert found.evidence_share == pytest.approx({"opening": 0.04, "id": 0.46, "timing": 0.50})
    assert found.timing_share == pytest.approx(0.50)
    assert (found.starts, found.starts_explained_share, found.unexplained_share) == (2, 1.0, 0.0)


def test_strict_leaves_the_long_gap_unexplained_instead() -> None:
    """The launch at 10 then binds b: 42 of 100 are a gap that no dependency explains."""
    found = measured(52, strict=True)
    assert found.timing_share == 0.0
    assert found.starts_explained_share == 0.5
    assert found.evidence_share["id"] == pytest.approx(0.90)


@pytest.mark.parametrize(("start", "share"), [(30, 1.0), (31, 0.5)])
def test_start_is_explained_within_twenty_of_what_it_waited_for(start: int, share: float) -> None:
    assert measured(start).starts_explained_share == share


def test_step_without_device_work_has_no_share_of_starts() -> None:
    found = trust.analyze(Trace(trace([event("cpu_op", "op", (0, 20), (1, 1))]), Options()).view())
    assert (found.starts, found.starts_explained_share) == (0, None)


def test_time_in_which_nothing_is_open_is_untracked() -> None:
    chrome = [event("cpu_op", "op", (0, 20), (1, 1)), event("cpu_op", "op", (50, 100), (1, 1))]
    assert trust.analyze(Trace(trace(chrome), Options()).view()).untracked_share == pytest.approx(0.3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_shares_of_evidence_add_up_to_one(path: Path) -> None:
    made = load(path)
    for step in made.steps:
        if step.elapsed_ns:
            found = trust.analyze(made.view(step.label))
            assert sum(found.evidence_share.values()) == pytest.approx(1.0)
            assert 0 <= found.unexplained_share + found.untracked_share <= 1 + 1e-12
