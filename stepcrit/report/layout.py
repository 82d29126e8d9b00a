"""Tables in a fixed number of cells: numbers keep their width, names give way, and then rows become lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from stepcrit.model.section import Cell, Column, Section, Unit
from stepcrit.report.names import short_name, short_names
from stepcrit.report.screen import Screen, wrap
from stepcrit.report.values import WORDS, value_text

WIDEST_NAME = 64
NARROWEST_WORDS = {Unit.NAME: 16, Unit.TEXT: 10}
GAP = 2
STYLES = {Unit.NAME: "cyan"}

Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """What a table shows: rows, the row that stands for those left out, and the total."""

    rows: tuple[Row, ...]
    more: Row | None
    more_words: str
    total: Row | None

    def all(self) -> list[Row]:
        """Every row with cells."""
        return [*self.rows, *(r for r in (self.more, self.total) if r is not None)]


def body_of(section: Section) -> Body:
    """Cut a table to its limit; what is left out stays in the sums."""
    limit = section.limit if section.limit is not None else len(section.rows)
    cut = section.rows[limit:]
    if not cut:
        return Body(section.rows, None, "", section.total)
    words = f"… and {len(cut)} more row{'s' if len(cut) > 1 else ''}"
    sums = [_together([row[i] for row in cut], c, section.total, i) for i, c in enumerate(section.columns)]
    if section.columns[0].unit not in WORDS or all(s is None for s in sums):
        return Body(section.rows[:limit], None, words, section.total)
    return Body(section.rows[:limit], (words, *sums[1:]), "", section.total)


def table(section: Section, screen: Screen) -> list[Text]:
    """A section's rows under one header, or as lists where the screen is too narrow."""
    body = body_of(section)
    widths = _widths(section.columns, body, screen)
    lines = (
        _listed(section.columns, body, screen)
        if widths is None
        else _ruled(section.columns, body, screen, widths)
    )
    return (
        [*lines, *wrap(Text(screen.sign(body.more_words), "dim"), screen.cells)] if body.more_words else lines
    )


def _together(cells: Sequence[Cell], column: Column, total: Row | None, i: int) -> Cell:
    """The sum of cells that are left out, where the table adds this column up."""
    if column.unit in WORDS or total is None or total[i] is None:
        return None
    numbers = [c for c in cells if isinstance(c, int | float)]
    return sum(numbers) if numbers else None


def _widths(columns: Sequence[Column], body: Body, screen: Screen) -> list[int] | None:
    """Cells for each column, or None when even narrow names leave too little."""
    widths = [_natural(c, i, body, screen) for i, c in enumerate(columns)]
    least = [min(w, NARROWEST_WORDS.get(c.unit, w)) for w, c in zip(widths, columns, strict=True)]
    over = sum(widths) + GAP * (len(widths) - 1) - screen.cells
    while over > 0:
        i = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
        if widths[i] <= least[i]:
            return None
        widths[i] -= 1
        over -= 1
    return widths


def _natural(column: Column, i: int, body: Body, screen: Screen) -> int:
    """As wide as the widest cell."""
    head = cell_len(screen.sign(column.title))
    if column.unit == Unit.NAME:
        names = [screen.sign(short_name(str(row[i]), WIDEST_NAME)) for row in body.rows if row[i] is not None]
    else:
        names = [_cell(row[i], column.unit, screen).plain for row in body.rows]
    extra = [_cell(row[i], column.unit, screen).plain for row in (body.more, body.total) if row is not None]
    return max([head, *(cell_len(n) for n in names), *(cell_len(n) for n in extra)])


def _ruled(columns: Sequence[Column], body: Body, screen: Screen, widths: list[int]) -> list[Text]:
    """Header, rows, a rule and the total."""
    head = [[Text(screen.sign(c.title), "dim")] for c in columns]
    cells = _cells(columns, body, screen, widths)
    lines = _line(columns, head, widths)
    for row in cells:
        lines += _line(columns, row, widths)
    if body.more is not None:
        lines += _line(columns, _extra(columns, body.more, screen, widths), widths, "dim")
    if body.total is not None:
        dash = "-" if screen.plain else "─"
        lines.append(Text(dash * (sum(widths) + GAP * (len(widths) - 1)), "dim"))
        lines += _line(columns, _extra(columns, body.total, screen, widths), widths, "bold")
    return lines


def _cells(
    columns: Sequence[Column], body: Body, screen: Screen, widths: list[int]
) -> list[list[list[Text]]]:
    """The rows' cells, each as its lines; names told apart within their column."""
    made: list[list[list[Text]]] = []
    for i, (column, width) in enumerate(zip(columns, widths, strict=True)):
        raws = [row[i] for row in body.rows]
        if column.unit == Unit.NAME:
            labels = _labels(raws, width, screen)
            made.append([[label] for label in labels])
        else:
            made.append([_wrapped(_cell(raw, column.unit, screen), column, width) for raw in raws])
    return [list(row) for row in zip(*made, strict=True)]


def _labels(raws: Sequence[Cell], width: int, screen: Screen) -> list[Text]:
    """Names of one column in its width."""
    shorts = iter(short_names([str(raw) for raw in raws if raw is not None], width))
    missing = value_text(None, Unit.NAME, plain=screen.plain)
    texts = [missing if raw is None else screen.sign(next(shorts)) for raw in raws]
    # spelled in ASCII a name may have grown
    return [Text(t if cell_len(t) <= width else t[:width], STYLES[Unit.NAME]) for t in texts]


def _extra(columns: Sequence[Column], row: Row, screen: Screen, widths: list[int]) -> list[list[Text]]:
    """The cells of a row of sums: what has none stays empty."""
    made = []
    for raw, column, width in zip(row, columns, widths, strict=True):
        text = Text("") if raw is None else _cell(raw, column.unit, screen)
        made.append(wrap(text, width))
    return made


def _wrapped(text: Text, column: Column, width: int) -> list[Text]:
    return wrap(text, width) if column.unit in WORDS else [text]


def _line(
    columns: Sequence[Column], cells: list[list[Text]], widths: list[int], style: str = ""
) -> list[Text]:
    """One row, as many lines as its highest cell."""
    lines = []
    for k in range(max(len(c) for c in cells)):
        line = Text(style=style)
        for i, (column, width) in enumerate(zip(columns, widths, strict=True)):
            cell = cells[i][k].copy() if k < len(cells[i]) else Text()
            cell.rstrip()
            pad = Text(" " * max(width - cell.cell_len, 0))
            line.append(" " * GAP if i else "").append_text(
                cell + pad if column.unit in WORDS else pad + cell
            )
        lines.append(line)
    return lines


def _cell(raw: Cell, unit: Unit, screen: Screen) -> Text:
    """A cell's words; missing ones step back."""
    return Text(
        screen.sign(value_text(raw, unit, plain=screen.plain)),
        STYLES.get(unit, "") if raw is not None else "dim",
    )


def _listed(columns: Sequence[Column], body: Body, screen: Screen) -> list[Text]:
    """Each row as a label and its values: for screens that hold no table."""
    lines: list[Text] = []
    indent = 2
    for row, style in [*((r, "") for r in body.rows), (body.more, "dim"), (body.total, "bold")]:
        if row is None:
            continue
        label = (
            short_name(str(row[0]), screen.cells)
            if columns[0].unit == Unit.NAME and row[0] is not None
            else None
        )
        first = (
            Text(screen.sign(label), style or STYLES[Unit.NAME])
            if label is not None
            else _cell(row[0], columns[0].unit, screen)
        )
        lines += wrap(first, screen.cells, indent)
        lines += _values(columns[1:], row[1:], screen, indent)
    return lines


def _values(columns: Sequence[Column], row: Row, screen: Screen, indent: int) -> list[Text]:
    """ "on path 12 ms, share 3 %": what is missing is left out, as a list can."""
    parts = []
    for raw, column in zip(row, columns, strict=True):
        if raw is not None and raw != "":
            text = short_name(str(raw), screen.cells - indent) if column.unit == Unit.NAME else None
            value = Text(screen.sign(text), STYLES[Unit.NAME]) if text else _cell(raw, column.unit, screen)
            parts.append(Text(screen.sign(column.title) + " ", "dim") + value)
    if not parts:
        return []
    return wrap(Text(" " * indent) + Text(", ").join(parts), screen.cells, indent)
