"""`stepcrit calc … --json`."""

from __future__ import annotations

from stepcrit.report.schemas.shape import TEXT, keys, maybe, one_of, rows

DATA = keys(
    calculator=one_of(("amdahl", "crossover", "roofline", "scaling")),
    notes=rows(TEXT),
    results=rows(
        keys(
            quantity=TEXT,
            claim=one_of(("bound", "declared", "modelled", "observed")),
            given=TEXT,
            value=maybe({"type": ["string", "number"]}),
            exact=maybe(TEXT),
            unit=TEXT,
            sign=one_of(("", "<=", ">=")),
        )
    ),
)
