"""`stepcrit diff --json`."""

from __future__ import annotations

from stepcrit.analyses.balance import How
from stepcrit.analyses.judgement import Outcome
from stepcrit.analyses.statistics import Call
from stepcrit.report.schemas.parts import BOUNDARY, CLASS, OPTIONS, RANGE, RANGE_NS, SENTENCE
from stepcrit.report.schemas.shape import (
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    SHARE,
    SPAN,
    TEXT,
    by_name,
    const,
    either,
    keys,
    maybe,
    one_of,
    rows,
)

CONCLUSIONS = (
    "same recording", "regression", "improvement", "no change", "inconclusive", "too few steps", "partial input",
    "different work", "different configuration", "recorded differently",
)  # fmt: skip
NOT_KNOWN = const("not known")
KINDS = one_of(("device", "comm", "host", "gap"))

CLAIMS = keys(
    **dict.fromkeys(
        ("matched", "periods", "path", "by_class", "device", "kernels", "hypotheses", "prediction"), TEXT
    )
)

FINGERPRINT = keys(
    recorded=by_name(either(FLAG, NOT_KNOWN)),
    platform=TEXT,
    device_use=TEXT,
    device_names=rows(TEXT),
    world_size=either(COUNT, NOT_KNOWN),
    rank=either(COUNT, NOT_KNOWN),
    backend=TEXT,
    product_dtypes=rows(TEXT),
    versions=by_name(TEXT),
    kinds_of_work=COUNT,
    varying_kinds=COUNT,
)

SIDE = keys(
    runs=rows(keys(source=TEXT, steps=rows(TEXT), periods_ns=rows(SPAN), is_steady=FLAG)),
    boundary=BOUNDARY,
    fingerprint=FINGERPRINT,
)

TIMES = keys(low=COUNT, high=COUNT, total=COUNT)

MATCHED = keys(
    is_matched=FLAG,
    differences=rows(
        keys(
            level=one_of(("capture", "configuration", "work", "note")),
            code=TEXT,
            is_known=FLAG,
            what=SENTENCE,
        )
    ),
    work=rows(
        keys(
            kind=one_of(("op", "device", "collective", "step")),
            name=TEXT,
            inputs=TEXT,
            dtypes=TEXT,
            group=TEXT,
            base=TIMES,
            new=TIMES,
        )
    ),
    flops_base=maybe(COUNT),
    flops_new=maybe(COUNT),
    flops_ratio=maybe(NUMBER),
    changed_work_on_path_ns=maybe(INTEGER),
)

SAMPLE = keys(
    count=COUNT,
    median_ns=SPAN,
    autocorrelation=NUMBER,
    block=COUNT,
    modes=maybe(
        keys(gap_ns=SPAN, low_median_ns=SPAN, high_median_ns=SPAN, low_count=COUNT, high_count=COUNT)
    ),
    drift_share=maybe(NUMBER),
)

PERIODS = keys(
    base=SAMPLE,
    new=SAMPLE,
    unit=one_of(("step", "run")),
    ratio=maybe(NUMBER),
    interval=maybe(keys(low=NUMBER, high=NUMBER)),
    shift_ns=INTEGER,
    u=NUMBER,
    a12=SHARE,
    p=SHARE,
    p_is_exact=FLAG,
    seed=INTEGER,
    resamples=COUNT,
    call=one_of(str(one) for one in Call),
    needed_steps=maybe(COUNT),
)

PATH = keys(
    base_ns=SPAN,
    new_ns=SPAN,
    delta_ns=INTEGER,
    keys=rows(
        keys(
            kind=KINDS,
            name=TEXT,
            inputs=TEXT,
            dtypes=TEXT,
            base_ns=SPAN,
            new_ns=SPAN,
            delta_ns=INTEGER,
            spread_ns=SPAN,
            own_base_ns=maybe(SPAN),
            own_new_ns=maybe(SPAN),
            own_delta_ns=maybe(INTEGER),
            calls_base=maybe(NUMBER),
            calls_new=maybe(NUMBER),
            how=one_of(str(one) for one in How),
        )
    ),
)

DEVICE = maybe(keys(times_ns=by_name(SPAN), idle_by_cause_ns=by_name(SPAN)))
PEAKS = maybe(rows(keys(device_type=INTEGER, device=INTEGER, peak_bytes=SPAN)))

HYPOTHESIS = keys(
    name=TEXT,
    inputs=TEXT,
    kind=KINDS,
    keys=COUNT,
    base_ns=SPAN,
    new_ns=SPAN,
    delta_ns=INTEGER,
    only_moved=FLAG,
    evenly_share=maybe(NUMBER),
    waits=NUMBER,
    saving_ns=maybe(RANGE_NS),
    words=SENTENCE,
)

JUDGED = keys(
    asked=TEXT,
    of=keys(source=TEXT, sha256=TEXT),
    is_of_base=FLAG,
    predicted_saving_ns=RANGE,
    ceiling_ns=INTEGER,
    observed_saving_ns=RANGE,
    outcome=maybe(one_of(str(one) for one in Outcome)),
    apart_ns=INTEGER,
    why_not=TEXT,
)

DATA = keys(
    claims=CLAIMS,
    options=OPTIONS,
    conclusion=one_of(CONCLUSIONS),
    passes=FLAG,
    headline=SENTENCE,
    threshold_share={"type": "number", "minimum": 0},
    base=SIDE,
    new=SIDE,
    matched=MATCHED,
    periods=PERIODS,
    path=PATH,
    by_class=rows(keys(**{"class": CLASS}, base_ns=SPAN, new_ns=SPAN, delta_ns=INTEGER)),
    device=keys(base=DEVICE, new=DEVICE),
    peak_memory=keys(base=PEAKS, new=PEAKS),
    kernels=rows(keys(op=TEXT, inputs=TEXT, only_base=rows(TEXT), only_new=rows(TEXT))),
    hypotheses=rows(HYPOTHESIS),
    prediction=maybe(JUDGED),
)
