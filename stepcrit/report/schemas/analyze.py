"""`stepcrit analyze --json` and `stepcrit demo --json`."""

from __future__ import annotations

from stepcrit.report.schemas.parts import (
    BOUNDARY,
    BY,
    CLASS,
    CLASSES,
    EVIDENCE_NAMES,
    OPTIONS,
    PIECES,
    RANGE_NS,
    SENTENCE,
    SIDE,
    TRUST,
)
from stepcrit.report.schemas.shape import (
    COUNT,
    FLAG,
    INTEGER,
    SHARE,
    SPAN,
    TEXT,
    also,
    by_name,
    keys,
    maybe,
    one_of,
    rows,
)

GROUPS = ("compute", "comm", "copy", "host", "gap")
SPLITS = ("compute", "comm alone", "copy alone", "idle")
SIDES_AT_ONCE = (
    "compute only", "comm only", "copy only", "compute+comm", "compute+copy", "comm+copy", "compute+comm+copy", "idle",
)  # fmt: skip

STEP = keys(
    label=TEXT,
    start_ns=INTEGER,
    end_ns=INTEGER,
    elapsed_ns=SPAN,
    latency_ns=INTEGER,
    host_start_ns=INTEGER,
    host_end_ns=INTEGER,
    device_activities=maybe(COUNT),
    is_period=FLAG,
    used=FLAG,
    why_not=TEXT,
)

RANKED = keys(
    name=TEXT,
    side=SIDE,
    calls=maybe(COUNT),
    self_cpu_ns=maybe(SPAN),
    device_ns=maybe(SPAN),
    critical_ns=SPAN,
    slack_min_ns=maybe(SPAN),
    drag_max_ns=maybe(SPAN),
    saving_half_ns=maybe(RANGE_NS),
    saving_free_ns=maybe(RANGE_NS),
)

TOTALS = {
    "self_cpu_ns": maybe(SPAN),
    "device_ns": maybe(SPAN),
    "critical_ns": SPAN,
    "replayed": COUNT,
    "saving_is_mean_of_periods": COUNT,
}

DEVICE = keys(
    window_ns=SPAN,
    summed_ns=SPAN,
    busy_ns=SPAN,
    partition_ns=by_name(SPAN, SPLITS),
    symmetric_ns=by_name(SPAN, SIDES_AT_ONCE),
    comm_ns=SPAN,
    covered_ns=SPAN,
    not_covered_ns=SPAN,
)

COLLECTIVE = keys(
    name=maybe(TEXT),
    group=maybe(TEXT),
    group_size=maybe(COUNT),
    dtype=maybe(TEXT),
    in_bytes=maybe(SPAN),
    out_bytes=maybe(SPAN),
    count=COUNT,
    device_ns=SPAN,
)

CLAIMS = keys(
    **dict.fromkeys(
        (
            "steps", "elapsed", "critical_path", "summed_ns", "device_busy_ns", "overlap", "exposed_comm", "idle_by_cause_ns",
            "queue", "operators", "ranking", "trust", "verdict",
        ),
        TEXT,
    )
)  # fmt: skip

DATA = keys(
    claims=CLAIMS,
    options=also(OPTIONS, stream=maybe(INTEGER)),
    trace=keys(
        rank=maybe(COUNT),
        world_size=maybe(COUNT),
        devices=rows(TEXT),
        events=COUNT,
        json_bytes=SPAN,
        options=rows(TEXT),
        dialect=rows(TEXT),
        resolution_ns=SPAN,
    ),
    boundary=BOUNDARY,
    steps=rows(STEP),
    steps_marked_by=TEXT,
    median_step=TEXT,
    chosen_step=TEXT,
    elapsed=keys(
        steady_steps=COUNT,
        periods=COUNT,
        median_ns=maybe(SPAN),
        low_ns=maybe(SPAN),
        high_ns=maybe(SPAN),
        spread_share=maybe({"type": "number", "minimum": 0}),
        is_distribution=FLAG,
        warm_up=rows(TEXT),
        set_aside=rows(TEXT),
    ),
    elapsed_ns=SPAN,
    latency_ns=INTEGER,
    microbatches=rows(COUNT),
    critical_path=keys(
        elapsed_ns=SPAN,
        by_class_ns=by_name(SPAN, CLASSES),
        by_group_ns=by_name(SPAN, GROUPS),
        by_evidence_ns=by_name(SPAN, EVIDENCE_NAMES),
        ties=COUNT,
        path_count=COUNT,
        path_count_is_at_least=FLAG,
        coupling=maybe(CLASS),
        paced_by=maybe(one_of(("host", "device"))),
        pieces=PIECES,
    ),
    summed_ns=keys(device=maybe(SPAN), host_tracked=maybe(SPAN)),
    device_busy_ns=maybe(by_name(SPAN)),
    overlap=maybe(by_name(DEVICE)),
    exposed_comm=maybe(
        keys(
            comm_union_ns=SPAN,
            overlapped_ns=SPAN,
            not_overlapped_ns=SPAN,
            on_critical_path_ns=SPAN,
            devices=COUNT,
            collectives=rows(COLLECTIVE),
        )
    ),
    idle_by_cause_ns=maybe(by_name(SPAN)),
    idle_by_owner_ns=maybe(by_name(SPAN)),
    queue=maybe(
        keys(
            launched=COUNT,
            launch_to_start_ns=maybe(INTEGER),
            launch_to_start_p95_ns=maybe(INTEGER),
            floor_ns=maybe(INTEGER),
            launch_bound_share=maybe(SHARE),
            max_depth=COUNT,
        )
    ),
    operators=rows(RANKED),
    operators_total=keys(**TOTALS),
    ranking=keys(by=BY, rows=rows(RANKED), **TOTALS),
    trust=TRUST,
    verdict=keys(
        code=TEXT,
        headline=SENTENCE,
        evidence=rows(SENTENCE),
        next=rows(
            keys(code=TEXT, what=SENTENCE, evidence=SENTENCE, refuted=SENTENCE, saving_half_ns=RANGE_NS)
        ),
    ),
)
