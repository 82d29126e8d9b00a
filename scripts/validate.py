"""How far predictions can be trusted, measured: one table, from changes that were really made.

    python scripts/validate.py                    all of it
    python scripts/validate.py --jobs 100 --part simulated
    python scripts/validate.py --readme           and write the table into README.md

Three parts. simulated: random jobs of every scenario, each with a random change that the simulator then
really makes; the same jobs on every machine. recorded: real jobs recorded before and after a real change.
corpus: durations of one step on the graph of another, for every trace with several steps; needs
STEPCRIT_CORPUS, and is left out without it. Replaying a schedule unchanged is exact by construction and
proves nothing here.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from validation import corpus, recorded, simulated
from validation.row import Row

README = Path(__file__).resolve().parent.parent / "README.md"
PARTS = ("simulated", "recorded", "corpus")
MARK = re.compile(r"(<!-- validate -->\n).*?(<!-- /validate -->)", re.DOTALL)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write down if asked."""
    options = _parser().parse_args(arguments)
    whole = (
        not options.part and options.jobs == simulated.JOBS_PER_FAMILY and os.environ.get("STEPCRIT_CORPUS")
    )
    if options.readme and not whole:
        sys.exit(
            "--readme takes all parts at their usual size: leave out --part and --jobs, and set STEPCRIT_CORPUS"
        )
    rows = [row for part in options.part or PARTS for row in _rows(part, options.jobs)]
    table = render(rows, dt.datetime.now(tz=dt.UTC).date())
    print(table)
    if options.readme:
        text = README.read_text(encoding="utf-8")
        README.write_text(MARK.sub(rf"\g<1>{table}\n\g<2>", text), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--jobs", type=int, default=simulated.JOBS_PER_FAMILY, help="simulated jobs a scenario"
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    return parser


def _rows(part: str, jobs: int) -> list[Row]:
    if part == "simulated":
        return simulated.rows(jobs)
    if part == "recorded":
        return recorded.rows()
    folder = os.environ.get("STEPCRIT_CORPUS", "")
    if not folder:
        print("corpus left out: STEPCRIT_CORPUS is not set", file=sys.stderr)
        return []
    return corpus.rows(Path(folder))


def render(rows: Sequence[Row], day: dt.date) -> str:
    """The table in Markdown, with its date and command."""
    lines = [
        f"Measured on {day} by `make validate`.",
        "",
        "| part | family | predictions | truth inside | median error | worst error | note |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row.part,
            row.family,
            str(row.cases),
            _share(row.inside_share, 0),
            _share(row.median_error, 2),
            _share(row.worst_error, 2),
            row.note,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


if __name__ == "__main__":
    sys.exit(main())
