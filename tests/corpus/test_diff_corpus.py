"""Pairs of real traces that belong together: every answer adds up, and none of another job gets a verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepcrit.answers.compared import Conclusion, compared
from stepcrit.answers.diff import document
from stepcrit.report.write import RENDERERS, render
from stepcrit.session import load

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS", "nowhere"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus: set STEPCRIT_CORPUS")

PAIRS = [
    ("param-dlrm-8rank/worker0*", "param-dlrm-8rank/worker1*", Conclusion.CONFIGURATION),
    ("tl-h100-hf/gaunernst*", "tl-mi300x-hf/gaunernst*", Conclusion.CONFIGURATION),
    ("tokenomics-tp2-llama/*layers0*", "tokenomics-tp2-llama/*layers1*", Conclusion.CONFIGURATION),
    ("switchtf-a100/trace_100K*", "switchtf-a100/trace_128*", Conclusion.WORK),
    ("hta-trimmed/base*", "hta-trimmed/test*", Conclusion.WORK),
    ("hta-a100-8rank-r3/control*", "hta-v100-ns/rank-0*", Conclusion.CAPTURE),
]


@pytest.mark.parametrize(("base", "new", "conclusion"), PAIRS, ids=lambda one: str(one).split("/")[0])
def test_a_pair_is_told_for_what_it_is_and_adds_up(base: str, new: str, conclusion: Conclusion) -> None:
    views = [load(next(iter(sorted(CORPUS.glob(one))))).view() for one in (base, new)]
    told = compared(views[:1], views[1:])
    assert told.conclusion == conclusion
    assert told.hypotheses == ()
    assert sum(d.path_ns for d in told.balance.deltas) == told.balance.delta_ns
    back = compared(views[1:], views[:1])
    assert back.balance.delta_ns == -told.balance.delta_ns
    for fmt in RENDERERS:
        assert render(document(told, {}), fmt)
