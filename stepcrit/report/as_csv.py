r"""CSV for spreadsheets and pandas: raw numbers, one block for each table.

Blocks are separated by an empty line, and each has its own header, because tables differ in their
columns. The first column, `table`, names the table in every row, so that lines can be filtered without
counting blocks: `pd.read_csv(io.StringIO(text.split("\n\n")[0]))` is the first table. Keys carry the
unit (`critical_ns`, `share` is 0..1); an empty cell is "not recorded". Total rows are left out, so that a
column's sum is right; bars are tables too (`part`, `ns`); findings come last (`code`, `what`, `count`);
sentences are not in it. Numbers are never quoted or rounded; a text that a spreadsheet could take for a
formula has a leading apostrophe.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from stepcrit.model.section import Bar, Block, Cell, Document, Value
from stepcrit.report.safe import csv_cell
from stepcrit.report.values import sentence_text

_Table = tuple[str, Sequence[str], Iterable[Sequence[Cell]]]


def render(document: Document) -> bytes:
    """Every table of the document."""
    tables = [table for block in document.blocks if (table := _table(block))]
    if document.findings:
        rows = [(f.code, sentence_text(f.what), f.count) for f in document.findings]
        tables.append(("findings", ("code", "what", "count"), rows))
    return "\n".join(_block(*table) for table in tables).encode()


def _table(block: Block) -> _Table | None:
    """A block as name, keys and rows; a paragraph is none."""
    if isinstance(block, Bar):
        return _key(block.title), ("part", "ns"), block.parts
    if not block.columns:
        return None
    return _key(block.title), [c.key for c in block.columns], block.rows


def _key(title: str) -> str:
    """A title as a key: "Ranked operators" is ranked_operators."""
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")


def _block(name: str, keys: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """One table with its header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", *(csv_cell(k) for k in keys)])
    writer.writerows([name, *map(_raw, row)] for row in rows)
    return out.getvalue()


def _raw(cell: Cell) -> str | float | None:
    """A number as it is, a text that no spreadsheet runs."""
    raw = cell.raw if isinstance(cell, Value) else cell
    return csv_cell(raw) if isinstance(raw, str) else raw
