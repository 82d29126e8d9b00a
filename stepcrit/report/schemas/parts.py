"""What several answers share: settings, stretches of the path, savings, trust."""

from __future__ import annotations

from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import EdgeKind, Evidence
from stepcrit.model.steps import Boundary
from stepcrit.report.schemas.shape import (
    COUNT,
    FLAG,
    INTEGER,
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

CLASSES = [work.label for work in WorkClass]
CLASS = one_of(CLASSES)
EDGE = one_of(kind.name.lower() for kind in EdgeKind)
EVIDENCE = one_of(kind.name.lower() for kind in Evidence)
EVIDENCE_NAMES = [*(kind.name.lower() for kind in Evidence), "opening"]
BOUNDARY = one_of(str(one) for one in Boundary)
SIDE = one_of(("device", "host", "gap"))
BY = one_of(("op", "kernel", "class", "module", "collective", "line"))

FLOORS = either(TEXT, by_name(SPAN))
"""A word, or class of dependency -> ns."""

OPTIONS = keys(
    strict=FLAG,
    device_only=FLAG,
    floors=FLOORS,
    step_regex=maybe(TEXT),
    optimizer_regex=maybe(TEXT),
    classes=maybe({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}),
)
"""What the numbers were computed under."""

RANGE_NS = keys(low_ns=INTEGER, high_ns=INTEGER)
"""A modelled number: from the conservative replay to the optimistic one."""

RANGE = keys(low=INTEGER, high=INTEGER)
"""The same where the key above has the unit."""

PIECES = rows(
    keys(
        **{"class": CLASS},
        start_ns=INTEGER,
        end_ns=INTEGER,
        length_ns=SPAN,
        kind=one_of(("activity", "gap")),
        name=TEXT,
        lane=TEXT,
        evidence=maybe(EVIDENCE),
        entered_by=maybe(EDGE),
    )
)

SENTENCE = keys(template=TEXT, values=rows({"type": ["string", "number"]}))

TRUST = keys(
    evidence_share=by_name(SHARE, EVIDENCE_NAMES),
    unexplained_share=SHARE,
    untracked_share=SHARE,
    timing_share=SHARE,
    starts=maybe(COUNT),
    starts_explained_share=maybe(SHARE),
    replay_error_ns=const(0),
    cross_step=keys(
        median_error_share=maybe({"type": "number", "minimum": 0}),
        worst_error_share=maybe({"type": "number", "minimum": 0}),
        matched_share=maybe(SHARE),
        crossing_count=COUNT,
        why_not=maybe(TEXT),
        pairs=rows(keys(graph=TEXT, durations=TEXT, predicted_ns=INTEGER, measured_ns=SPAN)),
    ),
)
