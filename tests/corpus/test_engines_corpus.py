"""Resource models on real traces of different families: with nothing changed the record comes back, and bounds hold."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from stepcrit.graph.busy import busy_in_step
from stepcrit.graph.engines import contended, free, queued
from stepcrit.graph.replay import POLICIES, step_alone
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.session import load

CORPUS = os.environ.get("STEPCRIT_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="STEPCRIT_CORPUS names no folder of real traces")

TRACES = (
    "hta-a100-nccl-meta/nccl_data.json.gz",
    "sidnb13-h100",
    "tl-mi300x-hf/gaunernst_bert-small-uncased__1016001.json.gz",
    "tl-h100-hf/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "particle-a100/profiler_trace_single_sample.json.gz",
    "kineto-old/nw0_2021Q1_worker0.pt.trace.json.gz",
)


@pytest.fixture(params=TRACES)
def view(request: pytest.FixtureRequest) -> StepGraph:
    path = Path(CORPUS) / str(request.param)
    if not path.exists():
        pytest.skip(f"not in this corpus: {request.param}")
    return load(path if path.is_file() else next(path.iterdir())).view()


def test_contention_gives_back_the_record_whatever_the_slowdown(view: StepGraph) -> None:
    graph = view.built.graph
    for policy in POLICIES:
        for slowdown in (Fraction(6, 5), Fraction(3)):
            ends = contended(view, slowdown)(graph.dur_ns, view.delays(policy))
            assert (ends == graph.end_ns).all()


def test_queue_deeper_than_anything_outstanding_changes_nothing(view: StepGraph) -> None:
    graph = view.built.graph
    assert (queued(view, 10**6)(graph.dur_ns, view.delays("join")) == graph.end_ns).all()


def test_smaller_queues_only_delay(view: StepGraph) -> None:
    graph = view.built.graph
    for depth in (1, 2, 16, 1024):
        assert (queued(view, depth)(graph.dur_ns, view.delays("join")) >= graph.end_ns).all()


def test_recorded_step_is_no_shorter_than_its_bounds(view: StepGraph) -> None:
    assert busy_in_step(step_alone(view), view.built.graph.dur_ns)[0].busy_ns <= view.step.elapsed_ns
    assert step_alone(view, free(view)).baseline().join_ns >= 0
