"""`stepcrit critical --json`: the path, or with `--around` the neighbours of one operation."""

from __future__ import annotations

from stepcrit.report.schemas.parts import (
    BOUNDARY,
    CLASS,
    CLASSES,
    EDGE,
    EVIDENCE,
    EVIDENCE_NAMES,
    OPTIONS,
    PIECES,
)
from stepcrit.report.schemas.shape import (
    COUNT,
    FLAG,
    INTEGER,
    SPAN,
    TEXT,
    by_name,
    const,
    either,
    keys,
    maybe,
    rows,
)

PATH = keys(
    step=TEXT,
    boundary=BOUNDARY,
    claim=const("schedule"),
    options=OPTIONS,
    elapsed_ns=SPAN,
    by_class_ns=by_name(SPAN, CLASSES),
    by_evidence_ns=by_name(SPAN, EVIDENCE_NAMES),
    ties=COUNT,
    path_count=COUNT,
    pieces=PIECES,
    joins=rows(
        keys(
            at_ns=INTEGER,
            activity=TEXT,
            binding=TEXT,
            runner_up=TEXT,
            margin_ns=SPAN,
            binding_kind=EDGE,
            runner_up_kind=EDGE,
            runner_up_evidence=EVIDENCE,
        )
    ),
)

NEIGHBOURS = rows(keys(name=TEXT, kind=EDGE, evidence=EVIDENCE, room_ns=INTEGER, binds=FLAG))

AROUND = keys(
    step=TEXT,
    operation=TEXT,
    options=OPTIONS,
    activities=COUNT,
    shown=rows(
        keys(
            **{"class": CLASS},
            name=TEXT,
            start_ns=INTEGER,
            dur_ns=SPAN,
            gap_ns=INTEGER,
            slack_ns=maybe(SPAN),
            drag_ns=SPAN,
            waits_for=NEIGHBOURS,
            waited_by=NEIGHBOURS,
        )
    ),
)

DATA = either(PATH, AROUND)
