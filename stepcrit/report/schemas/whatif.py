"""`stepcrit whatif --json` in its four forms, and the file of `--save`."""

from __future__ import annotations

from stepcrit.report.schemas.parts import (
    BOUNDARY,
    BY,
    CLASS,
    OPTIONS,
    RANGE,
    RANGE_NS,
    SIDE,
    TRUST,
)
from stepcrit.report.schemas.shape import (
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    SHARE,
    SPAN,
    TEXT,
    const,
    either,
    keys,
    maybe,
    one_of,
    rows,
)

MODELLED = {
    "claim": const("modelled"),
    "step": TEXT,
    "options": OPTIONS,
    "assumptions": rows(TEXT),
    "trust": TRUST,
}
"""What every form has."""

MATCHED = keys(activities=COUNT, total_ns=SPAN, on_path_ns=SPAN)

CHANGE = keys(
    selector=TEXT,
    operation=one_of(("scale", "set", "add", "remove")),
    factor=maybe({"type": "number", "minimum": 0}),
    amount_ns=maybe(INTEGER),
    device_activities=COUNT,
    host_ranges=COUNT,
    total_ns=SPAN,
    on_path_ns=SPAN,
)

SLOWDOWN = keys(
    slowdown=NUMBER, median_ratio=NUMBER, quartiles=rows(NUMBER), beside_count=COUNT, alone_count=COUNT
)

TRANSFER = keys(
    collectives=COUNT,
    without_metadata=COUNT,
    once=COUNT,
    transfer_ns=SPAN,
    waiting_ns=SPAN,
    is_estimate=FLAG,
    fits=rows(
        keys(
            collective=TEXT,
            group=TEXT,
            dtype=TEXT,
            alpha_ns=SPAN,
            ns_per_byte=NUMBER,
            sizes=COUNT,
            explained_share=NUMBER,
        )
    ),
)

MODEL = keys(
    name=TEXT,
    claim=one_of(("modelled", "bound")),
    assumes=TEXT,
    measured=maybe(either(SLOWDOWN, TRANSFER)),
)

REPLAYED = {
    "period_ns": SPAN,
    "mean_of_periods": COUNT,
    "predicted_ns": RANGE,
    "saving_ns": RANGE,
    "ceiling_ns": INTEGER,
    "matched": maybe(MATCHED),
    "model": TEXT,
}

CHANGED = keys(
    **MODELLED,
    **REPLAYED,
    changes=rows(CHANGE),
    baseline_saving_ns=RANGE,
    knee_share=maybe(SHARE),
    production_factor={"type": "number", "minimum": 0},
    takes_over=rows(keys(**{"class": CLASS}, on_path_ns=SPAN)),
    curve=rows(keys(taken_share=SHARE, saving_ns=RANGE_NS)),
    target=maybe(keys(target_ns=SPAN, taken_share=maybe(SHARE))),
    bounds=keys(elapsed_ns=SPAN, busy_ns=SPAN, busiest=TEXT, free_ns=maybe(SPAN)),
    models=rows(MODEL),
)

RANKED = keys(
    **MODELLED,
    by=BY,
    looked_at=COUNT,
    others_save_at_most_ns=INTEGER,
    model=TEXT,
    saving_is_mean_of_periods=COUNT,
    interventions=rows(
        keys(
            name=TEXT,
            side=SIDE,
            calls=COUNT,
            device_ns=SPAN,
            self_cpu_ns=SPAN,
            critical_ns=SPAN,
            saving_quarter_ns=RANGE_NS,
            saving_half_ns=RANGE_NS,
            saving_free_ns=RANGE_NS,
            levels_off_by_share=maybe(SHARE),
            gives_way_to=maybe(TEXT),
        )
    ),
)

ENOUGH = keys(parts=rows(keys(name=TEXT, side=SIDE, taken_share=SHARE)), saving_ns=RANGE_NS)

TARGETED = keys(
    **MODELLED,
    by=BY,
    period_ns=SPAN,
    mean_of_periods=COUNT,
    target_ns=SPAN,
    alone=rows(ENOUGH),
    together=maybe(ENOUGH),
    most=maybe(ENOUGH),
    nothing_left_ns=maybe(SPAN),
    left=rows(keys(name=TEXT, on_path_ns=SPAN)),
)

INJECTED = keys(
    **MODELLED,
    selector=TEXT,
    period_ns=SPAN,
    mean_of_periods=COUNT,
    matched=MATCHED,
    free_ns=keys(low=maybe(SPAN), high=maybe(SPAN)),
    cost_per_ns=keys(low=NUMBER, high=NUMBER),
)

PREDICTION = keys(
    **MODELLED,
    **{**REPLAYED, "matched": MATCHED},
    asked=keys(
        changes=rows(keys(option=TEXT, value=TEXT)),
        models=rows(TEXT),
        side=one_of(("auto", "device", "host", "both")),
        self=FLAG,
        with_launch=FLAG,
    ),
    boundary=BOUNDARY,
    steps=rows(TEXT),
    refuted_by=rows(TEXT),
)
