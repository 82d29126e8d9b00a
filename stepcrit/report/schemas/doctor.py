"""`stepcrit doctor --json`."""

from __future__ import annotations

from stepcrit.model.oddity import Done
from stepcrit.model.trace import Harm
from stepcrit.report.schemas.shape import (
    COUNT,
    INTEGER,
    SHARE,
    TEXT,
    also,
    by_name,
    keys,
    maybe,
    one_of,
    rows,
)

TIMES = (
    "away_ns",
    "cut_ns",
    "high_ns",
    "low_ns",
    "off_ns",
    "offset_ns",
    "overlap_ns",
    "taken_ns",
    "written_ns",
)
"""Times that a row which cannot be true is told with, as far as they are known."""

DATA = keys(
    checks=rows(
        keys(
            code={"type": "string", "pattern": "^E[0-9]{3}$"},
            evidence=TEXT,
            state=one_of(("ok", "warn", "missing", "n/a")),
            seen=TEXT,
            seen_numbers=rows(maybe({"type": "number"})),
            lost=TEXT,
            fix=TEXT,
        )
    ),
    dialect=rows(TEXT),
    dropped=by_name(COUNT),
    damage=rows(
        keys(
            harm=one_of(one.name.lower() for one in Harm),
            words=TEXT,
            count=COUNT,
            first_byte=maybe(COUNT),
            first_line=maybe(COUNT),
            excerpt=TEXT,
        )
    ),
    lost_share=SHARE,
    skipped=rows(keys(name=TEXT, why=TEXT)),
    unknown_categories=by_name(COUNT),
    phases=by_name(COUNT),
    implausible=rows(
        also(
            keys(
                code={"type": "string", "pattern": "^P[0-9]{3}$"},
                count=COUNT,
                of_count=COUNT,
                done=one_of(str(one) for one in Done),
                example=TEXT,
                place=INTEGER,
            ),
            **dict.fromkeys(TIMES, INTEGER),
        )
    ),
    graph_notes=by_name(COUNT),
    profiler_notes=rows(TEXT),
    recipe=rows(TEXT),
    slim=maybe(keys(level=TEXT, steps_before=COUNT, first_step=TEXT, last_step=TEXT)),
)
