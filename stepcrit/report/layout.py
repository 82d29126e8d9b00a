"""Tables in a fixed number of cells: numbers keep their width, names give way, and then rows become lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text

from stepcrit.model.section import Cell, Column, Section, Unit
from stepcrit.report.names import short_name, short_names
from stepcrit.report.safe import safe_text
from stepcrit.report.screen import Screen, wrap
from stepcrit.report.values import WORDS, value_text

WIDEST_NAME = 64
NARROWEST_WORDS = {Unit.NAME: 16, Unit.TEXT: 10}
GAPS = (2, 1)
"""Blanks between columns; one where two would leave too little of the names."""
ROOMY = 24
INDENT = 2
STYLES = {Unit.NAME: "cyan"}

Row = tuple[Cell, ...]


class Body(Struct, frozen=True):
    """What a table shows: rows, the row that stands for those left out, and the total."""

    rows: tuple[Row, ...]
    more: Row | None
    more_words: str
    total: Row | None


class Grid(Struct, frozen=True):
    """Columns, the cells each has, and the blanks between them."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    gap: int

    @property
    def width(self) -> int:
        """From edge to edge."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


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
    grid = _grid(section.columns, body, screen)
    if any(c.spare for c in section.columns) and (grid is None or grid.gap < GAPS[0]):
        return table(_without_spare(section), screen)
    return _listed(section.columns, body, screen) if grid is None else _ruled(grid, body, screen)


def _without_spare(section: Section) -> Section:
    """A section without the columns that give way first."""
    kept = [not c.spare for c in section.columns]
    columns = tuple(compress(section.columns, kept))
    rows = tuple(tuple(compress(row, kept)) for row in section.rows)
    total = None if section.total is None else tuple(compress(section.total, kept))
    return replace(section, columns=columns, rows=rows, total=total)


def _together(cells: Sequence[Cell], column: Column, total: Row | None, i: int) -> Cell:
    """The sum of cells that are left out, where the table adds this column up."""
    if column.unit in WORDS or total is None or total[i] is None:
        return None
    numbers = [c for c in cells if isinstance(c, int | float)]
    return sum(numbers) if numbers else None


def _grid(columns: Sequence[Column], body: Body, screen: Screen) -> Grid | None:
    """The columns with their widths, or None when even narrow names leave too little."""
    natural = [_natural(c, i, body, screen) for i, c in enumerate(columns)]
    wide = [_shrunk(natural, columns, screen.cells - gap * (len(columns) - 1)) for gap in GAPS]
    for gap, widths in zip(GAPS, wide, strict=True):
        is_roomy = widths is not None and all(
            w >= min(n, ROOMY) for w, n in zip(widths, natural, strict=True)
        )
        if widths is not None and (is_roomy or gap == GAPS[-1]):
            return Grid(tuple(columns), tuple(widths), gap)
    return None


def _shrunk(natural: list[int], columns: Sequence[Column], room: int) -> list[int] | None:
    """Widths that fit: the widest words give way first, none below its least; None when that is not enough."""
    widths = list(natural)
    least = [min(w, NARROWEST_WORDS.get(c.unit, w)) for w, c in zip(widths, columns, strict=True)]
    for _ in range(sum(widths) - room):
        i = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
        if widths[i] <= least[i]:
            return None
        widths[i] -= 1
    return widths


def _natural(column: Column, i: int, body: Body, screen: Screen) -> int:
    """As wide as the widest cell."""
    head = cell_len(screen.sign(safe_text(column.title)))
    if column.unit == Unit.NAME:
        names = [screen.sign(short_name(str(n), WIDEST_NAME)) for n in {row[i] for row in body.rows} - {None}]
    else:
        names = [_cell(row[i], column.unit, screen).plain for row in body.rows]
    extra = [_cell(row[i], column.unit, screen).plain for row in (body.more, body.total) if row is not None]
    return max([head, *(cell_len(n) for n in names), *(cell_len(n) for n in extra)])


def _ruled(grid: Grid, body: Body, screen: Screen) -> list[Text]:
    """Header, rows, a rule and the total."""
    lines = _line(grid, [[Text(screen.sign(safe_text(c.title)), "dim")] for c in grid.columns])
    for row in _cells(grid, body, screen):
        lines += _line(grid, row)
    if body.more is not None:
        lines += _line(grid, _extra(grid, body.more, screen), "dim")
    lines += _uncounted(body, screen)
    if body.total is not None:
        lines.append(Text(("-" if screen.plain else "─") * grid.width, "dim"))
        lines += _line(grid, _extra(grid, body.total, screen), "bold")
    return lines


def _cells(grid: Grid, body: Body, screen: Screen) -> list[list[list[Text]]]:
    """The rows' cells, each as its lines; names told apart within their column."""
    made: list[list[list[Text]]] = []
    for i, (column, width) in enumerate(zip(grid.columns, grid.widths, strict=True)):
        raws = [row[i] for row in body.rows]
        if column.unit == Unit.NAME:
            made.append([[label] for label in _labels(raws, width, screen)])
        else:
            made.append([wrap(_cell(raw, column.unit, screen), width) for raw in raws])
    return [list(row) for row in zip(*made, strict=True)]


def _labels(raws: Sequence[Cell], width: int, screen: Screen) -> list[Text]:
    """Names of one column in its width."""
    shorts = iter(short_names([str(raw) for raw in raws if raw is not None], width))
    missing = value_text(None, Unit.NAME, plain=screen.plain)
    texts = [missing if raw is None else screen.sign(next(shorts)) for raw in raws]
    # spelled in ASCII a name may have grown
    return [Text(t if cell_len(t) <= width else t[:width], STYLES[Unit.NAME]) for t in texts]


def _extra(grid: Grid, row: Row, screen: Screen) -> list[list[Text]]:
    """The cells of a row of sums: what has none stays empty."""
    cells = zip(row, grid.columns, grid.widths, strict=True)
    return [
        [Text("")] if raw is None else wrap(Text(_cell(raw, c.unit, screen).plain), w) for raw, c, w in cells
    ]


def _line(grid: Grid, cells: list[list[Text]], style: str = "") -> list[Text]:
    """One row, as many lines as its highest cell; words stand left, numbers right."""
    lines = []
    for k in range(max(len(c) for c in cells)):
        line = Text(style=style)
        for i, (column, width) in enumerate(zip(grid.columns, grid.widths, strict=True)):
            cell = cells[i][k].copy() if k < len(cells[i]) else Text()
            cell.rstrip()
            pad = Text(" " * max(width - cell.cell_len, 0))
            line.append(" " * grid.gap if i else "").append_text(
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


def _uncounted(body: Body, screen: Screen) -> list[Text]:
    """How many rows are left out, where nothing in them adds up."""
    return wrap(Text(screen.sign(body.more_words), "dim"), screen.cells) if body.more_words else []


def _listed(columns: Sequence[Column], body: Body, screen: Screen) -> list[Text]:
    """Each row as a label and its values: for screens that hold no table."""
    lines: list[Text] = []
    for row in body.rows:
        lines += _entry(columns, row, screen, "")
    lines += _entry(columns, body.more, screen, "dim") if body.more is not None else _uncounted(body, screen)
    return lines + (_entry(columns, body.total, screen, "bold") if body.total is not None else [])


def _entry(columns: Sequence[Column], row: Row, screen: Screen, style: str) -> list[Text]:
    """One row: "name", and under it "on path 12 ms, share 3 %"; what is missing is left out, as a list can."""
    label = _short(row[0], columns[0].unit, screen, screen.cells)
    label.stylize(style)
    parts = [
        Text(screen.sign(safe_text(c.title)) + " ", "dim")
        + _short(raw, c.unit, screen, screen.cells - INDENT)
        for raw, c in zip(row[1:], columns[1:], strict=True)
        if raw is not None and raw != ""
    ]
    values = Text(" " * INDENT) + Text(", ").join(parts)
    return wrap(label, screen.cells, INDENT) + (wrap(values, screen.cells, INDENT) if parts else [])


def _short(raw: Cell, unit: Unit, screen: Screen, width: int) -> Text:
    """A cell in a list, names shortened."""
    if unit != Unit.NAME or raw is None:
        return _cell(raw, unit, screen)
    return Text(screen.sign(short_name(str(raw), width)), STYLES[unit])
