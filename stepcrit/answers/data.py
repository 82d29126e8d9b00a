"""The analyze answer as data: integers with their unit in the key, shares 0..1, a claim with every group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stepcrit.analyses.critical import path_rows
from stepcrit.analyses.overlap import DeviceTime
from stepcrit.analyses.ranking import Ranked, Ranking
from stepcrit.answers.figures import Figures
from stepcrit.answers.sure import NULLS as SURE_NULLS
from stepcrit.answers.sure import sure_data
from stepcrit.answers.verdict import Verdict
from stepcrit.answers.words import saving_data
from stepcrit.errors import InternalError
from stepcrit.model.section import Deferred, Sentence
from stepcrit.model.steps import Step

Data = dict[str, Any]

CLAIMS = {
    "steps": "observed",
    "elapsed": "observed",
    "critical_path": "schedule",
    "summed_ns": "observed",
    "device_busy_ns": "observed",
    "overlap": "observed",
    "exposed_comm": "observed; on_critical_path_ns is schedule",
    "idle_by_cause_ns": "observed",
    "queue": "observed",
    "operators": "observed; critical_ns, slack_min_ns and drag_max_ns are schedule, saving_* are modelled",
    "ranking": "as operators",
    "trust": "schedule",
    "verdict": "schedule; savings are modelled",
}
"""What kind of statement each part of the data is (methods 0.2)."""


def facts(make: Callable[[], Data], reasons: Mapping[str, str]) -> tuple[Deferred, Deferred]:
    """An answer's data, and why its nulls are null (`nulls_of`), both for formats that ask for them."""
    data = Deferred(make)
    return data, Deferred(lambda: nulls_of(data.made, reasons))


def analyze_data(f: Figures, told: Verdict, settings: Mapping[str, Any]) -> Data:
    """Everything on the screen, what it leaves out, and the settings that it was computed under."""
    data = _recorded_data(f, told, settings)
    for path in not_recorded(f):
        _forget(data, path.split("."))
    return data


def _recorded_data(f: Figures, told: Verdict, settings: Mapping[str, Any]) -> Data:
    """All of it, with zero where nothing was recorded."""
    path = f.path
    return {
        "claims": CLAIMS,
        "options": {**settings, "stream": f.stream},
        "trace": _trace(f),
        "boundary": str(f.view.steps.boundary),
        "steps": [step_data(s) for s in f.view.steps],
        "steps_marked_by": f.view.steps.source,
        "median_step": f.view.steps.median().label,
        "chosen_step": f.view.step.label,
        "elapsed": _elapsed(f),
        "elapsed_ns": f.elapsed_ns,
        "latency_ns": f.view.step.latency_ns,
        "microbatches": list(f.view.steps.microbatches),
        "critical_path": {
            "elapsed_ns": path.elapsed_ns,
            "by_class_ns": {work.label: n for work, n in path.by_class_ns.items()},
            "by_group_ns": path.by_group_ns,
            "by_evidence_ns": path.by_evidence_ns,
            "ties": path.ties,
            "path_count": path.path_count,
            "path_count_is_at_least": path.path_count_capped,
            "coupling": path.coupling.label if path.coupling is not None else None,
            "paced_by": path.paced_by.name.lower() if path.paced_by is not None else None,
            "pieces": path_rows(f.view),
        },
        "summed_ns": {
            "device": sum(d.summed_ns for d in f.devices),
            "host_tracked": f.ops.self_cpu_ns,
        },
        "device_busy_ns": {d.device: d.busy_ns for d in f.devices},
        "overlap": {d.device: _device(d) for d in f.devices},
        "exposed_comm": _comm(f),
        "idle_by_cause_ns": f.idle.by_cause_ns if f.idle else {},
        "idle_by_owner_ns": f.idle.by_owner_ns if f.idle else {},
        "queue": _queue(f),
        "operators": [ranked_data(r) for r in f.ops.rows],
        "operators_total": _totals(f.ops),
        "ranking": {
            "by": f.ranking.by,
            "rows": [ranked_data(r) for r in f.ranking.rows],
            **_totals(f.ranking),
        },
        "trust": sure_data(f.sure),
        "verdict": _verdict(told),
    }


def step_data(step: Step) -> Data:
    """One step."""
    return {
        "label": step.label,
        "start_ns": step.start_ns,
        "end_ns": step.end_ns,
        "elapsed_ns": step.elapsed_ns,
        "latency_ns": step.latency_ns,
        "host_start_ns": step.host_start_ns,
        "host_end_ns": step.host_end_ns,
        "device_activities": step.device_count,
        "is_period": step.opens_at_boundary,
        "used": step.used,
        "why_not": step.why_not,
    }


def ranked_data(r: Ranked) -> Data:
    """One row of a ranking."""
    return {
        "name": r.name,
        "side": r.side,
        "calls": r.calls,
        "self_cpu_ns": r.self_cpu_ns,
        "device_ns": r.device_ns,
        "critical_ns": r.critical_ns,
        "slack_min_ns": r.slack_min_ns,
        "drag_max_ns": r.drag_max_ns,
        "saving_half_ns": saving_data(r.half),
        "saving_free_ns": saving_data(r.free),
    }


NOT_GIVEN = {
    f"options.{option}": "not given" for option in ("step_regex", "optimizer_regex", "classes", "stream")
}
"""Why an option of an answer can be null."""

NULLS = {
    "trace.rank": "distributedInfo does not say",
    "trace.world_size": "distributedInfo does not say",
    "elapsed.median_ns": "no step that counts has a period",
    "elapsed.low_ns": "no step that counts has a period",
    "elapsed.high_ns": "no step that counts has a period",
    "elapsed.spread_share": "no steady state, or fewer than 3 steady steps",
    "critical_path.coupling": "the path is empty",
    "critical_path.paced_by": "no boundary opens the step, or the path is empty",
    "critical_path.pieces[].evidence": "the stretch waited for nothing in the trace",
    "critical_path.pieces[].entered_by": "the stretch waited for nothing in the trace",
    "exposed_comm": "no device work in the window",
    "exposed_comm.collectives[].name": "no collective metadata",
    "exposed_comm.collectives[].group": "no collective metadata",
    "exposed_comm.collectives[].group_size": "no collective metadata",
    "exposed_comm.collectives[].dtype": "no collective metadata",
    "exposed_comm.collectives[].in_bytes": "no element count or no element size in the metadata",
    "exposed_comm.collectives[].out_bytes": "no element count or no element size in the metadata",
    **NOT_GIVEN,
    "queue.launch_to_start_ns": "no activity with a launch in the graph starts in the window",
    "queue.launch_to_start_p95_ns": "no activity with a launch in the graph starts in the window",
    "queue.launch_bound_share": "no activity with a launch in the graph starts in the window",
    "queue.floor_ns": "fewer than 20 activities found their queue idle",
    **SURE_NULLS,
    "operators[].drag_max_ns": "the boundary needs none of its activities, or the row is a gap",
    "operators[].slack_min_ns": "the boundary needs none of its activities, or the row is a gap",
    "operators[].saving_half_ns": "not replayed: a gap, or not among the names that save most",
    "operators[].saving_free_ns": "not replayed: a gap, or not among the names that save most",
    "ranking.rows[].drag_max_ns": "the boundary needs none of its activities, or the row is a gap",
    "ranking.rows[].slack_min_ns": "the boundary needs none of its activities, or the row is a gap",
    "ranking.rows[].saving_half_ns": "not replayed: a gap, or not among the names that save most",
    "ranking.rows[].saving_free_ns": "not replayed: a gap, or not among the names that save most",
}
"""Why a value can be null; `nulls_of` picks those that are."""


DEVICE_PATHS = (
    "summed_ns.device",
    "device_busy_ns",
    "overlap",
    "exposed_comm",
    "idle_by_cause_ns",
    "idle_by_owner_ns",
    "queue",
    "operators[].device_ns",
    "operators_total.device_ns",
    "ranking.rows[].device_ns",
    "ranking.device_ns",
    "steps[].device_activities",
    "trust.starts",
    "trust.starts_explained_share",
)
"""What is null where the device was not recorded."""

HOST_PATHS = (
    "summed_ns.host_tracked",
    "operators[].calls",
    "operators[].self_cpu_ns",
    "operators_total.self_cpu_ns",
    "ranking.rows[].self_cpu_ns",
    "ranking.self_cpu_ns",
)
"""What is null where the host was not recorded."""


def not_recorded(f: Figures) -> dict[str, str]:
    """Why a value is null that would be 0 had its side of the machine been recorded, by path."""
    device, host = not f.presence.device_known, not f.presence.host
    why = (
        f"not recorded: {f.presence.sign} but no device activity"
        if f.device_not_recorded
        else "not known: a device is listed, but neither its work nor a call to it was recorded"
    )
    calls = {"ranking.rows[].calls"} if (host if f.ranking.by == "op" else device) else set()
    return {
        **dict.fromkeys((*DEVICE_PATHS, *calls) if device else (), why),
        **dict.fromkeys((*HOST_PATHS, *calls) if host else (), "not recorded: nothing of the host"),
    }


def _forget(value: Any, path: list[str]) -> None:
    """Put null at a path ("rows[]" stands for every row)."""
    key, rest = path[0], path[1:]
    for row in value[key.removesuffix("[]")] if key.endswith("[]") else ():
        _forget(row, rest)
    if not key.endswith("[]"):
        if rest:
            _forget(value[key], rest)
        else:
            value[key] = None


def nulls_of(data: Data, reasons: Mapping[str, str]) -> dict[str, str]:
    """The reason of every null in `data`, by path ("rows[].x" for any row).

    Raises:
        InternalError: a null without a reason (a bug).
    """
    found: set[str] = set()
    _find_nulls(data, "", found)
    without = sorted(found - set(reasons))
    if without:
        raise InternalError("a null in the answer has no reason", where=without[0])
    return {path: reasons[path] for path in sorted(found)}


HOLDERS, LISTS = (dict, list, tuple), (list, tuple)


def _find_nulls(value: Any, path: str, found: set[str]) -> None:
    """Collect the paths of nulls; answers hold hundred thousands of numbers, which are passed over here."""
    if value is None:
        found.add(path)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if inner is None or isinstance(inner, HOLDERS):
                _find_nulls(inner, f"{path}.{key}" if path else key, found)
    elif isinstance(value, LISTS):
        for inner in value:
            if inner is None or isinstance(inner, HOLDERS):
                _find_nulls(inner, f"{path}[]", found)


def _trace(f: Figures) -> Data:
    meta = f.view.trace.meta
    return {
        "rank": meta.rank if meta.rank >= 0 else None,
        "world_size": meta.world_size if meta.world_size >= 0 else None,
        "devices": [d.name for d in meta.devices],
        "events": meta.event_count,
        "json_bytes": meta.json_bytes,
        "options": sorted(meta.options),
        "dialect": list(meta.dialect),
        "resolution_ns": meta.resolution_ns,
    }


def _elapsed(f: Figures) -> Data:
    e = f.elapsed
    return {
        "steady_steps": len(e.used) if e.is_distribution else 0,
        "periods": len(e.used),
        "median_ns": None if e.median_ns is None else round(e.median_ns),
        "low_ns": e.low_ns,
        "high_ns": e.high_ns,
        "spread_share": e.spread_share,
        "is_distribution": e.is_distribution,
        "warm_up": [s.label for s in e.warm_up],
        "set_aside": [s.label for s in e.set_aside],
    }


def _device(d: DeviceTime) -> Data:
    return {
        "window_ns": d.window_ns,
        "summed_ns": d.summed_ns,
        "busy_ns": d.busy_ns,
        "partition_ns": d.partition_ns,
        "symmetric_ns": d.symmetric_ns,
        "comm_ns": d.comm_ns,
        "covered_ns": d.covered_ns,
        "not_covered_ns": d.not_covered_ns,
    }


def _comm(f: Figures) -> Data | None:
    """Summed over devices; by device in `overlap`."""
    if not f.devices:
        return None
    return {
        "comm_union_ns": sum(d.comm_ns for d in f.devices),
        "overlapped_ns": sum(d.covered_ns for d in f.devices),
        "not_overlapped_ns": sum(d.not_covered_ns for d in f.devices),
        "on_critical_path_ns": f.comm_on_path_ns,
        "devices": len(f.devices),
        "collectives": _collectives(f),
    }


def _collectives(f: Figures) -> list[Data]:
    """Communication activities of the capture by what their metadata says; -1 and "" are null."""
    events = f.view.trace.events
    grouped: dict[tuple[Any, ...], list[int]] = {}
    for c in f.collectives:
        key = (c.name or None, c.group or None, c.group_size, c.dtype or None, c.in_bytes, c.out_bytes)
        grouped.setdefault(key, []).append(int(events.end_ns[c.row] - events.start_ns[c.row]))
    keys = ("name", "group", "group_size", "dtype", "in_bytes", "out_bytes")
    return [
        {
            **{k: (None if v == -1 else v) for k, v in zip(keys, key, strict=True)},
            "count": len(times),
            "device_ns": sum(times),
        }
        for key, times in sorted(grouped.items(), key=lambda item: (-sum(item[1]), str(item[0])))
    ]


def _queue(f: Figures) -> Data:
    q = f.queue
    return {
        "launched": q.count,
        "launch_to_start_ns": q.launch_to_start_ns,
        "launch_to_start_p95_ns": q.p95_ns,
        "floor_ns": q.floor_ns,
        "launch_bound_share": q.launch_bound_share,
        "max_depth": q.max_depth,
    }


def _totals(ranking: Ranking) -> Data:
    return {
        "self_cpu_ns": ranking.self_cpu_ns,
        "device_ns": ranking.device_ns,
        "critical_ns": ranking.critical_ns,
        "replayed": ranking.replayed,
        "saving_is_mean_of_periods": ranking.period_count,
    }


def _verdict(told: Verdict) -> Data:
    return {
        "code": told.code,
        "headline": plain(told.headline),
        "evidence": [plain(s) for s in told.evidence],
        "next": [
            {
                "code": n.code,
                "what": plain(n.what),
                "evidence": plain(n.evidence),
                "refuted": plain(n.refuted),
                "saving_half_ns": {"low_ns": n.low_ns, "high_ns": n.high_ns},
            }
            for n in told.next
        ],
    }


def plain(sentence: Sentence) -> Data:
    """A sentence for machines: its template and its raw values."""
    return {"template": sentence.template, "values": [v.raw for v in sentence.values]}
