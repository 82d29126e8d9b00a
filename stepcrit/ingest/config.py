"""stepcrit.toml, or [tool.stepcrit] of pyproject.toml, as a typed `Config`; each fault with its line and near names."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from stepcrit.errors import QUOTED, ConfigError, quoted
from stepcrit.ingest.amounts import read_amount
from stepcrit.ingest.tomlplaces import Path, Spot, places
from stepcrit.model.checked import Place
from stepcrit.model.config import Amount, Budget, Config, Kind, Level, Manner, Preset, Watch, is_backwards

LARGEST_CONFIG = 1 << 20
"""So many bytes of a configuration are read."""

MOST_DOTS = 200
"""No line of it has more: what tomllib takes for a dotted key grows with the square of its dots."""

TOOL = ("tool", "stepcrit")
"""Where pyproject.toml has the tables that stepcrit.toml has at its top."""

Limit = Annotated[str | int | float, msgspec.Meta(description='"420 ms", "64 MiB", "5 %", or a bare number')]
Globs = Annotated[str | list[str], msgspec.Meta(description="paths or globs; ** stands for folders")]

READ_ON = ("traces", "max", "min", "grow", "grow_abs", "max_trace_size")
"""Keys whose values are read further, with words of their own."""


class CheckTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[check]: which traces, compared with what, and how strictly."""

    traces: Globs = ()  # type: ignore[assignment]
    base: Annotated[str, msgspec.Meta(description="a git ref or a folder; empty: budgets only")] = ""
    steps: Annotated[
        str,
        msgspec.Meta(
            description="median, worst, all, a step's number or a range 12-15",
            pattern=r"^(median|worst|all|[0-9]{1,9}(-[0-9]{1,9})?)$",
        ),
    ] = "median"
    preset: Literal["recommended", "structure", "none"] = "recommended"
    incomparable: Literal["error", "warn", "skip"] = "error"
    stale: Literal["error", "warn", "skip"] = "error"
    max_trace_size: Limit = ""


class BudgetTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One metric's budget."""

    max: Annotated[Limit, msgspec.Meta(description="the most")] = ""
    min: Annotated[Limit, msgspec.Meta(description="the least")] = ""
    grow: Annotated[
        Limit, msgspec.Meta(description='allowed relative growth over the baseline: "5 %", 0')
    ] = ""
    grow_abs: Annotated[Limit, msgspec.Meta(description="allowed absolute growth over the baseline")] = ""
    level: Literal["error", "warn", "off"] = "error"


class File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A whole stepcrit.toml."""

    schema: Literal[1] = 1
    check: CheckTable = CheckTable()
    watch: Annotated[
        dict[str, Globs], msgspec.Meta(description="traces -> the code that they are about")
    ] = {}
    budget: Annotated[
        dict[str, dict[str, BudgetTable]], msgspec.Meta(description="traces -> metric -> its budget")
    ] = {}


def config_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration."""
    (whole,), parts = msgspec.json.schema_components([File], ref_template="#/$defs/{name}")
    return {**whole, "$defs": parts}


def has_tables(data: bytes) -> bool:
    """Whether a pyproject.toml has tables for stepcrit; one that is no TOML and never names it is not ours to judge."""
    if b"stepcrit" not in data:
        return False
    try:
        tool = tomllib.loads(_text(data)).get("tool")
    except (ValueError, RecursionError):
        return b"tool.stepcrit" in data
    return isinstance(tool, dict) and TOOL[1] in tool


def parse_config(data: bytes, source: str, top: Path = ()) -> Config:
    """A configuration as its bytes say.

    Args:
        data: of the file.
        source: what it is called in messages.
        top: the table that stands for the top: `TOOL` in pyproject.toml.

    Raises:
        ConfigError: it cannot be read, or a key or value means nothing; with its line.
    """
    try:
        text = _text(data)
        table: Any = tomllib.loads(text)
        spots = places(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigError(f"{source} cannot be read: {why}", where=source, do="correct it") from error
    for key in top:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return _Reading(source, top, spots).config(table)


def _text(data: bytes) -> str:
    """The text of a file, without what tomllib would choke on.

    Raises:
        ValueError: as it would.
    """
    if len(data) > LARGEST_CONFIG:
        raise ValueError(f"it is larger than {LARGEST_CONFIG} bytes")
    text = data.decode()
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        raise ValueError(f"a line has more than {MOST_DOTS} dots")
    return text


class _Reading:
    """One file on its way to a `Config`."""

    def __init__(self, source: str, top: Path, spots: Mapping[Path, Spot]) -> None:
        self._source = source
        self._top = top
        self._spots = spots
        self._written = {path[len(top) :] for path in spots if path[: len(top)] == top}

    def config(self, table: object) -> Config:
        """The whole file."""
        file = self._keys(table, (), File)
        if file.get("schema", 1) != 1 or isinstance(file.get("schema"), bool):
            self._refuse(
                ("schema",), f"schema {_shown(file['schema'])} is not known", "this stepcrit reads schema = 1"
            )
        check = self._fields(file.get("check", {}), ("check",), CheckTable)
        if is_backwards(check.get("steps", "")):
            self._refuse(
                ("check", "steps"), f"steps {_shown(check['steps'])} end before they begin", "turn them round"
            )
        size = check.get("max_trace_size", "")
        return Config(
            source=self._source,
            traces=self._globs(check.get("traces", []), ("check", "traces")),
            base=check.get("base", ""),
            steps=check.get("steps", "median"),
            preset=Preset(check.get("preset", "recommended")),
            incomparable=Manner(check.get("incomparable", "error")),
            stale=Manner(check.get("stale", "error")),
            max_trace_size=self._amount(size, ("check", "max_trace_size"), Kind.SIZE, Kind.PLAIN),
            watch=tuple(self._watch(file.get("watch", {}))),
            budgets=tuple(self._budgets(file.get("budget", {}))),
        )

    def _watch(self, table: object) -> list[Watch]:
        found = self._table(table, ("watch",))
        return [
            Watch(glob, self._globs(code, ("watch", glob)), self._place(("watch", glob)))
            for glob, code in found.items()
        ]

    def _budgets(self, table: object) -> list[Budget]:
        return [
            self._budget(glob, metric, written)
            for glob, metrics in self._table(table, ("budget",)).items()
            for metric, written in self._table(metrics, ("budget", glob)).items()
        ]

    def _budget(self, glob: str, metric: str, written: object) -> Budget:
        at: Path = ("budget", glob, metric)
        if not isinstance(written, dict):
            self._refuse(
                at, f"the budget of {quoted(metric)} is no table", f"{metric} = {{ max = {_shown(written)} }}"
            )
        table = self._fields(written, at, BudgetTable)
        most, least, grow_abs = (self._amount(table.get(k, ""), (*at, k)) for k in ("max", "min", "grow_abs"))
        grow = self._amount(table.get("grow", ""), (*at, "grow"), Kind.SHARE, Kind.PLAIN)
        if grow is not None and grow.kind == Kind.PLAIN and grow.number:
            what = f"grow = {grow.words} may be a share or a count"
            self._refuse(
                (*at, "grow"), what, 'a relative growth is written "5 %", an absolute one is grow_abs'
            )
        level = Level(table.get("level", "error"))
        if not (most or least or grow or grow_abs) and level != Level.OFF:
            self._refuse(
                at, f"the budget of {quoted(metric)} has no limit", "give max, min, grow or grow_abs"
            )
        if most and least and least.kind == most.kind and least.number > most.number:
            self._refuse((*at, "min"), f"min {least.words} is over max {most.words}", "swap them")
        return Budget(glob, metric, most, least, grow, grow_abs, level, self._place(at))

    def _amount(self, written: Any, at: Path, *kinds: Kind) -> Amount | None:
        """An amount, None where nothing was written."""
        if written == "" and at not in self._written:
            return None
        try:
            amount = read_amount(written)
        except ValueError as error:
            self._refuse(at, f"{at[-1]} = {_shown(written)} is no amount", str(error))
        if kinds and amount.kind not in kinds:
            self._refuse(at, f"{at[-1]} = {amount.words} is {amount.kind}", f"it takes {' or '.join(kinds)}")
        return amount

    def _globs(self, written: object, at: Path) -> tuple[str, ...]:
        """One path or a list of them."""
        several = [written] if isinstance(written, str) else written
        if not isinstance(several, list) or not all(isinstance(one, str) and one for one in several):
            name = f"[{at[0]}] {at[1]}"
            self._refuse(
                at, f"{name} in {self._source} is no list of paths", f'{_key(at[-1])} = ["traces/*.json.gz"]'
            )
        return tuple(several)

    def _fields(self, table: object, at: Path, struct: type[msgspec.Struct]) -> dict[str, Any]:
        """The keys of a table that are there, each of its type."""
        found = self._keys(table, at, struct)
        types = _types(struct)
        for key, value in found.items():
            if key in READ_ON:
                continue
            try:
                msgspec.convert(value, types[key])
            except msgspec.ValidationError as error:
                self._refuse((*at, key), f"{key} = {_shown(value)} cannot be meant", _said(error, types[key]))
        return found

    def _keys(self, table: object, at: Path, struct: type[msgspec.Struct]) -> dict[str, Any]:
        """A table all of whose keys are known."""
        found = self._table(table, at)
        known = list(_types(struct))
        for key in found:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]}? " if near else ""
                if struct is BudgetTable and isinstance(found[key], dict):
                    hint = f'a metric with dots goes in quotes: "{at[-1]}.{key}…" '
                self._refuse((*at, key), f"unknown key {quoted(key)}", f"{hint}there are {', '.join(known)}")
        return found

    def _table(self, value: object, at: Path) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse(
                at, f"{'.'.join(map(str, at)) or self._source} is no table", "see stepcrit explain check"
            )
        return value

    def _place(self, at: Path) -> Place:
        """The line of a key, else of what holds it."""
        path: Path = (*self._top, *at)
        while path and path not in self._spots:
            path = path[:-1]
        return Place(self._source, self._spots[path].line if path else 1)

    def _refuse(self, at: Path, what: str, do: str) -> NoReturn:
        raise ConfigError(what, where=f"{self._source}:{self._place(at).line}", do=do)


@cache
def _types(struct: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The type of each key of a table; a file may have one table a line."""
    return {field.name: field.type for field in msgspec.structs.fields(struct)}


def _said(error: msgspec.ValidationError, kind: object) -> str:
    """What is allowed, in words."""
    words = getattr(kind, "__args__", ())
    if words and all(isinstance(one, str) for one in words):
        return f"choose one of {', '.join(words)}"
    pattern = 'median, worst, all, a step\'s number or a range "12-15"'
    return pattern if "pattern" in str(error) or "regex" in str(error) else str(error)


def _shown(value: object) -> str:
    """A value as it was written, or the beginning of it."""
    words = repr(value)
    return words if len(words) <= QUOTED else f"{words[:QUOTED]}..."


def _key(name: str | int) -> str:
    """A key as TOML writes it."""
    plain = str(name)
    return plain if plain.replace("_", "").replace("-", "").isalnum() and plain.isascii() else f'"{plain}"'
