"""The answer of `diff` as data: integers with their unit in the key, shares 0..1, a reason for every null."""

from __future__ import annotations

from typing import Any

from stepcrit.analyses.balance import Balance, Cost, Delta
from stepcrit.analyses.fingerprint import Difference, Fingerprint, WorkChange
from stepcrit.analyses.statistics import Modes, Sample
from stepcrit.answers import diffwords as words
from stepcrit.answers.compared import Compared, Judged
from stepcrit.answers.data import NOT_GIVEN, plain
from stepcrit.answers.hypothesis import Hypothesis
from stepcrit.answers.sides import Side
from stepcrit.answers.words import saving_data
from stepcrit.graph.pathkeys import PathKey
from stepcrit.link.workload import Times, WorkKey
from stepcrit.model.classes import WorkClass

Data = dict[str, Any]

CLAIMS = {
    "matched": "observed",
    "periods": "estimate",
    "path": "schedule",
    "by_class": "schedule",
    "device": "observed",
    "kernels": "observed",
    "hypotheses": "modelled",
    "prediction": "estimate",
}
"""What kind of statement each part of the data is (methods 0.2)."""

_GAP = "a gap, or untracked time: it is no activity"
_NO_RATIO = "the median base step takes no time"
NULLS = {
    "periods.ratio": _NO_RATIO,
    "periods.interval": "too few steps on a side, or the median base step takes no time",
    "periods.needed_steps": "the verdict stands, or no number of steps is known that would decide",
    "periods.base.modes": "one kind of steps",
    "periods.new.modes": "one kind of steps",
    "periods.base.drift_share": "fewer than 5 steps, or they take no time",
    "periods.new.drift_share": "fewer than 5 steps, or they take no time",
    "path.keys[].own_base_ns": _GAP,
    "path.keys[].own_new_ns": _GAP,
    "path.keys[].own_delta_ns": _GAP,
    "path.keys[].calls_base": _GAP,
    "path.keys[].calls_new": _GAP,
    "matched.flops_base": "no matrix products, or their shapes were not recorded",
    "matched.flops_new": "no matrix products, or their shapes were not recorded",
    "matched.flops_ratio": "no matrix products of known shapes on both sides",
    "matched.changed_work_on_path_ns": "all operators are done equally often",
    "device.base": "not recorded: no device activity of a job that uses a device, or not known whether it does",
    "device.new": "not recorded: no device activity of a job that uses a device, or not known whether it does",
    "peak_memory.base": "not recorded: no allocator events with totals",
    "peak_memory.new": "not recorded: no allocator events with totals",
    "hypotheses[].saving_ns": "its own time has not changed, or how much of it sets the pace is in no trace",
    "hypotheses[].evenly_share": "not nearly all of it changed by one factor",
    "prediction": "none given",
    "prediction.outcome": "it cannot be judged: see why_not",
    **NOT_GIVEN,
}
"""Why a value can be null."""


def diff_data(told: Compared) -> Data:
    """Everything on the screen, and what it leaves out."""
    return {
        "claims": CLAIMS,
        "conclusion": str(told.conclusion),
        "passes": told.passes,
        "headline": plain(words.headline(told)),
        "threshold_share": told.asked.threshold,
        "base": _side(told.base),
        "new": _side(told.new),
        "matched": _matched(told),
        "periods": _periods(told),
        "path": {
            "base_ns": told.balance.base_ns,
            "new_ns": told.balance.new_ns,
            "delta_ns": told.balance.delta_ns,
            "keys": [_delta(d) for d in told.balance.deltas],
        },
        "by_class": _classes(told.by_class),
        "device": {"base": _device(told.base), "new": _device(told.new)},
        "peak_memory": {"base": _peaks(told.base), "new": _peaks(told.new)},
        "kernels": [
            {"op": key.name, "inputs": key.detail, "only_base": list(gone), "only_new": list(come)}
            for key, gone, come in told.renamed
        ],
        "hypotheses": [_hypothesis(told, one) for one in told.hypotheses],
        "prediction": None if told.judged is None else _judged(told.judged),
    }


def _side(side: Side) -> Data:
    return {
        "runs": [
            {
                "source": run.name,
                "steps": [step.label for step in run.steps],
                "periods_ns": run.periods_ns,
                "is_steady": run.is_steady,
            }
            for run in side.runs
        ],
        "boundary": str(side.first.view.steps.boundary),
        "fingerprint": _fingerprint(side.first.fingerprint),
    }


def _fingerprint(one: Fingerprint) -> Data:
    return {
        "recorded": {key: "not known" if on is None else on for key, on in one.capture.items()},
        "platform": one.platform,
        "device_use": str(one.use),
        "device_names": [] if one.device_names is None else list(one.device_names),
        "world_size": one.world_size if one.world_size >= 0 else "not known",
        "rank": one.rank if one.rank >= 0 else "not known",
        "backend": one.backend or "not known",
        "product_dtypes": list(one.product_dtypes or ()),
        "versions": dict(one.versions),
        "kinds_of_work": len(one.work),
        "varying_kinds": one.varies,
    }


def _matched(told: Compared) -> Data:
    before, after = (side.first.fingerprint.flops for side in (told.base, told.new))
    return {
        "is_matched": not any(one.is_known and one.level < 3 for one in told.differences),
        "differences": [_difference(one) for one in told.differences],
        "work": [_change(change) for change in told.work_changes],
        "flops_base": before,
        "flops_new": after,
        "flops_ratio": after / before if before and after is not None else None,
        "changed_work_on_path_ns": told.changed_work_ns,
    }


def _difference(one: Difference) -> Data:
    return {
        "level": one.level.name.lower(),
        "code": one.code,
        "is_known": one.is_known,
        "what": plain(one.what),
    }


def _change(change: WorkChange) -> Data:
    return {**_work_key(change.key), "base": _times(change.base), "new": _times(change.new)}


def _work_key(key: WorkKey) -> Data:
    return {
        "kind": key.kind,
        "name": key.name,
        "inputs": key.shapes,
        "dtypes": key.dtypes,
        "group": key.group,
    }


def _times(times: Times) -> Data:
    return {"low": times.low, "high": times.high, "total": times.total}


def _periods(told: Compared) -> Data:
    shift, verdict = told.shift, told.verdict
    return {
        "base": _sample(shift.base),
        "new": _sample(shift.new),
        "unit": "run" if told.by_runs else "step",
        "ratio": shift.ratio,
        "interval": {"low": shift.low, "high": shift.high} if told.has_interval else None,
        "shift_ns": round(shift.shift_ns),
        "u": shift.u,
        "a12": shift.a12,
        "p": shift.p,
        "p_is_exact": shift.is_exact,
        "seed": shift.seed,
        "resamples": shift.resamples,
        "call": str(verdict.call),
        "needed_steps": verdict.needed,
    }


def _sample(sample: Sample) -> Data:
    return {
        "count": len(sample.values_ns),
        "median_ns": round(sample.median_ns),
        "autocorrelation": sample.lag1,
        "block": sample.block,
        "modes": None if sample.modes is None else _modes(sample.modes),
        "drift_share": sample.drift_share,
    }


def _modes(modes: Modes) -> Data:
    return {
        "gap_ns": round(modes.gap_ns),
        "low_median_ns": round(modes.low_ns),
        "high_median_ns": round(modes.high_ns),
        "low_count": modes.low_count,
        "high_count": modes.high_count,
    }


def _delta(delta: Delta[PathKey]) -> Data:
    return {
        "kind": delta.key.kind,
        "name": delta.key.name,
        "inputs": delta.key.detail,
        "dtypes": delta.key.dtypes,
        "base_ns": delta.base.path_ns,
        "new_ns": delta.new.path_ns,
        "delta_ns": delta.path_ns,
        "spread_ns": round(delta.spread_ns),
        "own_base_ns": _own(delta.base),
        "own_new_ns": _own(delta.new),
        "own_delta_ns": delta.own_ns,
        "calls_base": None if delta.base.calls is None else float(delta.base.calls),
        "calls_new": None if delta.new.calls is None else float(delta.new.calls),
        "how": str(delta.how),
    }


def _own(cost: Cost) -> int | None:
    return None if cost.own_ns is None else round(cost.own_ns)


def _classes(found: Balance[WorkClass]) -> list[Data]:
    return [
        {"class": d.key.label, "base_ns": d.base.path_ns, "new_ns": d.new.path_ns, "delta_ns": d.path_ns}
        for d in found.deltas
    ]


def _device(side: Side) -> Data | None:
    if side.times_ns is None or side.idle_ns is None:
        return None
    return {"times_ns": side.times_ns, "idle_by_cause_ns": side.idle_ns}


def _peaks(side: Side) -> list[Data] | None:
    return [
        {"device_type": kind, "device": number, "peak_bytes": peak}
        for (kind, number), peak in sorted(side.peak_bytes.items())
    ] or None


def _hypothesis(told: Compared, one: Hypothesis) -> Data:
    return {
        "name": one.name,
        "inputs": one.detail,
        "kind": one.deltas[0].key.kind,
        "keys": len(one.deltas),
        "base_ns": one.base_ns,
        "new_ns": one.new_ns,
        "delta_ns": one.delta_ns,
        "only_moved": one.moved,
        "evenly_share": one.evenly,
        "waits": one.waits,
        "saving_ns": saving_data(one.saving),
        "words": plain(words.hypothesis_words(told, one)),
    }


def _judged(judged: Judged) -> Data:
    p = judged.predicted
    return {
        "asked": p.asked,
        "of": {"source": p.source, "sha256": p.sha256},
        "is_of_base": judged.is_of_base,
        "predicted_saving_ns": {"low": p.low_ns, "high": p.high_ns},
        "ceiling_ns": p.ceiling_ns,
        "observed_saving_ns": {"low": round(judged.low_ns), "high": round(judged.high_ns)},
        "outcome": None if judged.outcome is None else str(judged.outcome),
        "apart_ns": round(judged.apart_ns),
        "why_not": judged.why_not,
    }
