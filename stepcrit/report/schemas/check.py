"""`stepcrit check --json`."""

from __future__ import annotations

from stepcrit.model.checked import Effect, Outcome
from stepcrit.model.section import Unit
from stepcrit.report.schemas.parts import SENTENCE
from stepcrit.report.schemas.shape import NUMBER, TEXT, keys, maybe, one_of, rows

OUTCOME = one_of(str(one) for one in Outcome)
EFFECT = one_of(str(one) for one in Effect)
JUDGED = {"outcome": OUTCOME, "effect": EFFECT}
"""A verdict, and what it does to the exit code."""

REMARK = keys(
    **JUDGED,
    code={"type": "string", "pattern": "^S?C[0-9]{3}$"},
    what=SENTENCE,
    written_at=maybe(TEXT),
)

ROW = keys(
    **JUDGED,
    metric=TEXT,
    unit=one_of(str(one) for one in Unit),
    value=maybe(NUMBER),
    base=maybe(NUMBER),
    allowed=SENTENCE,
    why=maybe(SENTENCE),
    written_at=maybe(TEXT),
)

DATA = keys(
    config=TEXT,
    base=TEXT,
    exit_code={"enum": [0, 1, 4]},
    traces=rows(
        keys(
            **JUDGED,
            file=TEXT,
            baseline=TEXT,
            explain_with=TEXT,
            rows=rows(ROW),
            remarks=rows(REMARK),
        )
    ),
    remarks=rows(REMARK),
    notes=rows(SENTENCE),
    tightened=rows(keys(written_at=TEXT, metric=TEXT, which=one_of(("max", "min")), old=TEXT, new=TEXT)),
)
