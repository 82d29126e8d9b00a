"""`import stepcrit` as README shows it, and what its objects promise."""

from __future__ import annotations

import doctest
import importlib
import io
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import networkx as nx
import pandas as pd
import pytest

import stepcrit as sc
from tests.builders import event
from tests.builders import trace as trace_of

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "fixtures" / "simulated" / "item_sync.json.gz"
MODULES = [m.name for m in pkgutil.walk_packages(sc.__path__, "stepcrit.") if not m.name.endswith("__main__")]


@pytest.fixture(scope="module")
def trace() -> sc.Trace:
    return sc.load(TRACE)


def test_readme_example_runs_as_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "trace.json.gz").write_bytes(TRACE.read_bytes())
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "import stepcrit" in block
    )
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - our own README
    assert isinstance(names["t"], sc.Trace)


def test_every_public_name_is_there_and_documented() -> None:
    for name in sc.__all__:
        thing = getattr(sc, name)
        assert name == "__version__" or thing.__doc__
    assert set(dir(sc)) >= set(sc.__all__)
    with pytest.raises(AttributeError, match="no attribute"):
        sc.no_such_name  # noqa: B018 - asking is the test


def test_critical_path_is_a_data_frame_whose_lengths_sum_to_the_step(trace: sc.Trace) -> None:
    path = trace.graph().critical_path()
    frame = path.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["length_ns"].sum() == path.elapsed_ns == trace.steps.median().elapsed_ns
    assert sum(path.by_class().values()) == path.elapsed_ns
    assert (frame["start_ns"].iloc[1:].to_numpy() == frame["end_ns"].iloc[:-1].to_numpy()).all()


def test_slack_of_nodes_on_the_path_is_zero(trace: sc.Trace) -> None:
    graph = trace.graph()
    frame = graph.slack().set_index("node")
    on_path = [n for n in graph.view.path.node.tolist() if n in frame.index]
    assert (frame.loc[on_path, "total_slack_ns"] == 0).all()


def test_networkx_view_has_every_edge_and_its_longest_path_is_ours(trace: sc.Trace) -> None:
    graph = trace.graph()
    view = graph.to_networkx()
    built = graph.view.built
    assert (view.number_of_nodes(), view.number_of_edges()) == (len(built.graph), len(built.graph.src))
    weighted = nx.DiGraph()
    for u, v, d in view.edges(data=True):
        weight = view.nodes[u]["dur_ns"] + d["lag_ns"]
        if not weighted.has_edge(u, v) or weighted[u][v]["weight"] < weight:
            weighted.add_edge(u, v, weight=weight)
    sink = max(graph.view.sinks, key=lambda n: int(built.graph.end_ns[n]))
    reach = nx.ancestors(weighted, sink) | {sink}
    sub = weighted.subgraph(reach)
    longest = 0
    best = {n: view.nodes[n]["start_ns"] if not sub.in_degree(n) else 0 for n in sub}
    for n in nx.topological_sort(sub):
        for p in sub.predecessors(n):
            best[n] = max(best[n], best[p] + sub[p][n]["weight"])
        longest = max(longest, best[n] + view.nodes[n]["dur_ns"])
    assert longest == graph.step.end_ns


def test_objects_show_themselves(trace: sc.Trace) -> None:
    graph = trace.graph(-1)
    assert "steps" in repr(trace)
    assert graph.step.label in repr(graph)
    assert "stretches" in repr(graph.critical_path())
    for html in (trace._repr_html_(), graph.critical_path()._repr_html_()):
        assert "<table" in html


def test_unknown_step_is_an_error_that_lists_the_steps(trace: sc.Trace) -> None:
    with pytest.raises(sc.UsageError, match="no step 'nope'") as caught:
        trace.graph("nope")
    assert trace.steps[0].label in caught.value.do


@pytest.mark.parametrize(("years", "is_told"), [(36, False), (37, True), (100, True)])
def test_what_spans_more_than_36_years_is_no_recording(years: int, is_told: bool) -> None:  # noqa: FBT001 - a case
    last = years * 31_557_600_000_000
    row = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":%d,"dur":5}'
    rows = ",".join(row % at for at in (0, 10, last - 20, last - 5))
    text = io.BytesIO(f'{{"schemaVersion":1,"traceEvents":[{rows}]}}'.encode())
    if is_told:
        with pytest.raises(sc.InputError, match=f"span {years} years"):
            sc.load(text)
    else:
        assert sc.load(text).graph().critical_path().elapsed_ns == last * 1000


def test_step_that_takes_no_time_is_refused_by_name() -> None:
    """Step 3 has only `small`, which runs beside the end of step 2's `big`: both end with `big`."""
    # host  |la   | |lb   |
    # s7      [big 3..........40]
    #              [small 20..25]
    events = [
        event("user_annotation", "ProfilerStep#2", (0, 10)),
        event("cuda_runtime", "cudaLaunchKernel", (1, 2), correlation=1),
        event("user_annotation", "ProfilerStep#3", (10, 18)),
        event("cuda_runtime", "cudaLaunchKernel", (11, 12), correlation=2),
        event("kernel", "big", (3, 40), (0, 7), correlation=1, stream=7),
        event("kernel", "small", (20, 25), (0, 7), correlation=2, stream=7),
    ]
    drawn = sc.Trace(trace_of(events), sc.Options())
    assert [step.elapsed_ns > 0 for step in drawn.steps] == [True, False]
    with pytest.raises(sc.InputError, match="ProfilerStep#3 takes no time"):
        drawn.graph(3)
    assert drawn.graph(2).critical_path().elapsed_ns == drawn.steps[0].elapsed_ns


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    assert doctest.testmod(module).failed == 0
