"""What putting a difference right would give is what the whatif engine gives, and what the simulator really gives."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from statistics import mean

import pytest

from scripts.simulator.change import Change as Made
from stepcrit.analyses import restore
from stepcrit.graph.change import Change
from stepcrit.graph.pathkeys import PathKey, keyed
from stepcrit.graph.selector import Selector
from stepcrit.session import Trace, load
from tests.asking import analyze
from tests.pairs import written

FIXTURES = Path(__file__).parents[2] / "fixtures"


def _period(made: Trace) -> float:
    return mean(step.elapsed_ns for step in made.steps if step.used and step.opens_at_boundary)


@pytest.mark.parametrize(
    ("name", "op"), [("simulated/device_bound", "aten::mm"), ("recorded/python_halved_before", "format_log")]
)
def test_a_share_of_a_key_saves_what_shrinking_its_name_saves(name: str, op: str) -> None:
    view = load(FIXTURES / f"{name}.json.gz").view()
    found = keyed(view.trace, view.links)
    (key,) = [k for k in found.keys if k.name == op and k.kind == ("device" if op == "aten::mm" else "host")]
    change = Change(Selector("name", op), "scale", factor=Fraction(1, 2))
    expected = analyze(view, [change]).saving
    saving = restore.analyze(view, found, {key: Fraction(1, 2)})
    assert saving is not None
    assert (saving.low_ns, saving.high_ns) == pytest.approx((expected.low_ns, expected.high_ns), abs=1000)


def test_nothing_taken_away_saves_nothing() -> None:
    view = load(FIXTURES / "simulated" / "ddp_tail.rank0.json.gz").view()
    found = keyed(view.trace, view.links)
    for key in found.keys:
        saving = restore.analyze(view, found, {key: Fraction(0)})
        assert saving is None or (saving.low_ns, saving.high_ns) == (0, 0)


def test_shorter_gaps_save_what_shrinking_their_class_saves() -> None:
    view = load(FIXTURES / "simulated" / "host_bound.json.gz").view()
    key = PathKey("gap", "launch latency")
    change = Change(Selector("class", "launch latency"), "scale", factor=Fraction(1, 2))
    expected = analyze(view, [change]).saving
    saving = restore.analyze(view, keyed(view.trace, view.links), {key: Fraction(1, 2)})
    assert saving is not None
    assert expected.low_ns > 0
    assert (saving.low_ns, saving.high_ns) == (expected.low_ns, expected.high_ns)


def test_of_a_wait_for_loader_workers_nothing_is_foretold() -> None:
    view = load(FIXTURES / "recorded" / "loader_halved_before.json.gz").view()
    found = keyed(view.trace, view.links)
    (key,) = [k for k in found.keys if k.name.startswith("enumerate(DataLoader)")]
    assert restore.analyze(view, found, {key: Fraction(1, 2)}) is None


def test_a_step_without_its_wait_is_as_long_as_the_simulator_makes_it(tmp_path: Path) -> None:
    """The same seed with the wait really taken out of the program."""
    waiting = load(written(tmp_path / "waiting.json.gz", "item_sync"))
    free = load(written(tmp_path / "free.json.gz", "item_sync", (Made("remove_sync"),)))
    view = waiting.view()
    found = keyed(view.trace, view.links)
    saving = restore.unwaiting(view, found, [PathKey("host", "cudaMemcpyAsync")])
    really = _period(waiting) - _period(free)
    assert really > 0.05 * _period(waiting)
    assert saving.low_ns == pytest.approx(really, rel=0.1)
    assert restore.unwaiting(view, found, [PathKey("host", "cudaLaunchKernel")]).high_ns == 0
