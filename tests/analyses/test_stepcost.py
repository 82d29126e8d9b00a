"""Steps divided by key: exact on the path, and counted over as plain loops count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from stepcrit.analyses import critical, stepcost
from stepcrit.analyses.fingerprint import counted_steps
from stepcrit.graph.pathkeys import PathKey
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind
from stepcrit.session import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRACES = [
    "simulated/ddp_tail.rank0", "simulated/item_sync", "simulated/graph_step", "recorded/wait_removed_before",
    "recorded/accumulation_update", "recorded/accumulation_microbatch",
]  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_every_step_sums_to_its_period_by_key_and_by_class(name: str) -> None:
    made = load(FIXTURES / f"{name}.json.gz")
    view = made.view()
    cost = stepcost.analyze(view, counted_steps(made.steps))
    assert cost.steps
    for step, path, classes in zip(cost.steps, cost.path_ns, cost.class_ns, strict=True):
        assert sum(path.values()) == sum(classes.values()) == step.elapsed_ns
        assert critical.analyze(replace(view, step=step)).by_class_ns == classes


@pytest.mark.parametrize("name", TRACES)
def test_own_time_is_what_a_loop_over_all_rows_finds(name: str) -> None:
    made = load(FIXTURES / f"{name}.json.gz")
    view, events = made.view(), made.raw.events
    cost = stepcost.analyze(view, counted_steps(made.steps))
    total: Counter[PathKey] = Counter()
    calls: Counter[PathKey] = Counter()
    of_row = [cost.keyed.keys[i] for i in cost.keyed.groups.of_row.tolist()]
    for row in range(len(events)):
        kind, start = EventKind(int(events.kind[row])), int(events.start_ns[row])
        on_host = kind in HOST_KINDS and any(s.host_start_ns <= start < s.host_end_ns for s in cost.steps)
        on_device = kind in DEVICE_KINDS and any(s.start_ns <= start < s.end_ns for s in cost.steps)
        if on_host or on_device:
            calls[of_row[row]] += 1
        if on_device:
            total[of_row[row]] += int(events.end_ns[row]) - start
    pieces = view.links.pieces
    for start, end, owner in zip(
        pieces.start_ns.tolist(), pieces.end_ns.tolist(), pieces.owner.tolist(), strict=True
    ):
        if owner >= 0 and any(s.host_start_ns <= start < s.host_end_ns for s in cost.steps):
            total[of_row[owner]] += end - start
    assert {key: one.calls for key, one in cost.own.items() if one.calls} == dict(calls)
    assert {key: one.total_ns for key, one in cost.own.items() if one.total_ns} == {
        k: n for k, n in total.items() if n
    }


def test_a_call_waits_where_the_device_decides_its_return() -> None:
    made = load(FIXTURES / "simulated" / "item_sync.json.gz")
    cost = stepcost.analyze(made.view(), counted_steps(made.steps))
    assert {key.name for key in cost.waits} == {"cudaMemcpyAsync"}
    assert sum(cost.waits.values()) == len(cost.steps)


def test_kernels_are_told_under_the_operator_that_launched_them() -> None:
    made = load(FIXTURES / "simulated" / "device_bound.json.gz")
    cost = stepcost.analyze(made.view(), counted_steps(made.steps))
    products = {key: kernels for key, kernels in cost.kernels.items() if key.name == "aten::mm"}
    assert [list(kernels) for kernels in products.values()] == [
        ["ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn"]
    ]
    (key,) = products
    assert sum(products[key].values()) == cost.own[key].total_ns
