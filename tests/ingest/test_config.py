"""A configuration becomes what it says; what it cannot mean is told with its line, and every line is the right one."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.errors import ConfigError
from stepcrit.ingest.amounts import UNITS, read_amount
from stepcrit.ingest.config import TOOL, has_tables, parse_config
from stepcrit.ingest.tomlplaces import Path, places
from stepcrit.model.checked import Place
from stepcrit.model.config import Kind, Level, Manner, Preset

WHOLE = b"""\
schema = 1
[check]
traces = ["traces/**/*.json.gz", "one.json"]  # two
base = "origin/main"
steps = "12-15"
preset = "structure"
incomparable = "warn"
stale = "skip"
max_trace_size = "2 MB"

[watch]
"traces/*" = ["models/**", "train.py"]

[budget."*"]
host_syncs = { max = 1 }
step_time = { max = "420 ms", grow = "5 %", grow_abs = "2 ms" }
[budget."traces/b/*"]
"critical{class=launch}" = { max = "25 ms", level = "warn" }
kernel_launches.grow = 0
"""


def test_a_whole_file_is_read_as_it_says() -> None:
    config = parse_config(WHOLE, "stepcrit.toml")
    assert (config.traces, config.base) == (("traces/**/*.json.gz", "one.json"), "origin/main")
    assert (config.steps, config.preset) == ("12-15", Preset.STRUCTURE)
    assert (config.incomparable, config.stale) == (Manner.WARN, Manner.SKIP)
    assert config.max_trace_size is not None
    assert config.max_trace_size.number == 2_000_000
    assert [(w.glob, w.code, w.place.line) for w in config.watch] == [
        ("traces/*", ("models/**", "train.py"), 12)
    ]
    syncs, step, launch, launches = config.budgets
    assert (syncs.metric, syncs.max and syncs.max.number, syncs.min) == ("host_syncs", 1, None)
    assert [a and a.number for a in (step.max, step.grow, step.grow_abs)] == [420_000_000, 0.05, 2_000_000]
    assert (launch.glob, launch.level, launch.place) == ("traces/b/*", Level.WARN, Place("stepcrit.toml", 18))
    assert (launches.grow and launches.grow.number, launches.place.line) == (0, 19)


def test_an_empty_file_is_the_defaults() -> None:
    config = parse_config(b"", "stepcrit.toml")
    assert (config.traces, config.base, config.steps) == ((), "", "median")
    assert (config.preset, config.incomparable, config.stale) == (
        Preset.RECOMMENDED,
        Manner.ERROR,
        Manner.ERROR,
    )
    assert (config.max_trace_size, config.watch, config.budgets) == (None, (), ())


def test_pyproject_has_the_same_tables_lower_down() -> None:
    text = b"[project]\nname = 'x'\n[tool.stepcrit.check]\ntraces = 'a'\n[tool.stepcrit.budget.'*']\nh = {max = 1}\n"
    config = parse_config(text, "pyproject.toml", TOOL)
    assert config.traces == ("a",)
    assert config.budgets[0].place == Place("pyproject.toml", 6)


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (b"[tool.stepcrit]\n", True),
        (b"tool = { stepcrit = {} }", True),
        (b"[tool]\nstepcrit.check = {}\n", True),
        (b"dependencies = ['stepcrit']", False),
        (b"[tool.other]\nx = 'stepcrit'", False),
        (b"[tool\n", False),
        (b"[tool.stepcrit\n", True),  # ours, and broken: to be told
        (b"tool = 'stepcrit'", False),
    ],
)
def test_a_pyproject_without_tables_for_stepcrit_is_not_ours(text: bytes, has: bool) -> None:  # noqa: FBT001
    assert has_tables(text) is has


@pytest.mark.parametrize(
    ("text", "line", "what", "do"),
    [
        ("a = 1", 1, "unknown key 'a'", "there are schema, check"),
        ("schema = 2", 1, "schema 2 is not known", "schema = 1"),
        ("schema = true", 1, "schema True is not known", "schema = 1"),
        ("[check]\n\nstepz = 'all'", 3, "unknown key 'stepz'", "did you mean steps?"),
        ("[check]\nsteps = 'first'", 2, "steps = 'first' cannot be meant", "median, worst, all"),
        ("[check]\nsteps = '12-3'", 2, "end before they begin", "turn them round"),
        ("[check]\nsteps = 3", 2, "steps = 3 cannot be meant", "str"),
        ("[check]\npreset = 'x'", 2, "preset = 'x'", "choose one of recommended, structure, none"),
        ("[check]\ntraces = [1]", 2, "no list of paths", "traces = ["),
        ("[check]\ntraces = [\n '',\n]", 2, "no list of paths", "traces = ["),
        ("[check]\nmax_trace_size = '2 ms'", 2, "is a time", "a size or a bare number"),
        ("[check]\nmax_trace_size = ''", 2, "is no amount", "number and a unit"),
        ("check = 1", 1, "check is no table", "explain check"),
        ("[watch]\n'a*' = 3", 2, "no list of paths", "traces"),
        ("[budget.'*']\n# so\nh = 3", 3, "is no table", "h = { max = 3 }"),
        ("[budget.'*']\nh = {}", 2, "has no limit", "give max"),
        ("[budget.'*']\nh = { mx = 3 }", 2, "unknown key 'mx'", "did you mean max?"),
        ("[budget.'*']\na.b.c = { max = 3 }", 2, "unknown key 'b'", "in quotes"),
        ("[budget.'*'.h]\nmin = 1\nmax = '3 quux'", 3, "max = '3 quux' is no amount", "'quux' is no unit"),
        ("[budget.'*']\nh = { max = true }", 2, "is no amount", "give a number"),
        ("[budget.'*']\nh = { max = 1979-05-27 }", 2, "is no amount", "give a number"),
        ("[budget.'*']\nh = { grow = [1] }", 2, "is no amount", "give a number"),
        ("[check]\nmax_trace_size = { a = 1 }", 2, "is no amount", "give a number"),
        ("[budget.'*']\nh = { max = -1 }", 2, "is no amount", "at least 0"),
        ("[budget.'*']\nh = { max = nan }", 2, "is no amount", "at least 0"),
        ("[budget.'*']\nh = { max = '' }", 2, "is no amount", "number and a unit"),
        ("[budget.'*']\nh = { grow = 3 }", 2, "may be a share or a count", "grow_abs"),
        ("[budget.'*']\nh = { grow = '3 ms' }", 2, "grow = 3 ms is a time", "a share"),
        ("[budget.'*']\nh = { max = 1, min = 2 }", 2, "min 2 is over max 1", "swap"),
        ("[budget.'*']\nh = { max = 1, level = 'x' }", 2, "level = 'x'", "error, warn, off"),
        ("[check]\na = \n", 1, "cannot be read", "correct it"),
    ],
)
def test_a_fault_is_told_with_its_line(text: str, line: int, what: str, do: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text.encode(), "stepcrit.toml")
    assert what in caught.value.what
    assert do in caught.value.do
    assert caught.value.where in (f"stepcrit.toml:{line}", "stepcrit.toml")
    assert (caught.value.where == "stepcrit.toml") == (what == "cannot be read")


def test_a_value_of_any_length_makes_a_short_message() -> None:
    for text in (
        f"schema = {'9' * 4000}",
        f"[check]\nsteps = '{'x' * 9000}'",
        f"[budget.'*']\nh = {'9' * 4000}",
    ):
        with pytest.raises(ConfigError) as caught:
            parse_config(text.encode(), "stepcrit.toml")
        assert len(caught.value.what + caught.value.do) < 400


# --- amounts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "number", "kind"),
    [
        ("420 ms", 420_000_000, Kind.TIME), ("1.5us", 1_500, Kind.TIME), ("2 µs", 2_000, Kind.TIME),
        ("2 \u03bcs", 2_000, Kind.TIME), ("0.1 ns", 0, Kind.TIME), ("1 min", 60 * 10**9, Kind.TIME),
        ("64 MiB", 64 * 2**20, Kind.SIZE), ("2 MB", 2_000_000, Kind.SIZE), ("1 kB", 1000, Kind.SIZE),
        ("5 %", 0.05, Kind.SHARE), ("12.5%", 0.125, Kind.SHARE), ("1 234", 1234, Kind.PLAIN), ("1_234", 1234, Kind.PLAIN),
        ("0.12", 0.12, Kind.PLAIN), (0.12, 0.12, Kind.PLAIN), (0, 0, Kind.PLAIN), (7, 7, Kind.PLAIN),
    ],
)  # fmt: skip
def test_amounts(written: str | float, number: float, kind: Kind) -> None:
    amount = read_amount(written)
    assert (amount.number, amount.kind) == (number, kind)
    assert isinstance(amount.number, type(number))


@pytest.mark.parametrize(
    "written",
    ["", " ", "ms", "-1 ms", "1 Ms", "1 mS", "1e3 ms", "1..2 ms", "1 ms 2", "5 % 3", "\u0661 ms", "9" * 30 + " s",
     "1" * 50, float("nan"), float("inf"), -1, True, "1 m"],
)  # fmt: skip
def test_what_is_no_amount(written: str | float) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_amount(written)


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_that_a_message_names_is_one(unit: str) -> None:
    assert read_amount(f"1 {unit}").kind != Kind.PLAIN


# --- places ----------------------------------------------------------------------------------

AWKWARD = '''\
# "[not]" = a table
schema = 1\t# one
[ check ]
traces = [ "a", # ] a comment
  'b#]"', [ 1, 2 ], { x = [ "}" ] } ]
"quo\\"ted.key" . inner = """
[not.a.table]
k = "v" \\"""\\
 """""
'lit.eral' = \'\'\'it''s
here = 1\'\'\'
when = 2026-01-02 03:04:05.5  # a space inside
[[many]]
n = 1
[[many]]
n = 2
[many.below]
deep.er = { y = "=", z.w = 0x1F }
[[many]]
empty = {}
none = []
[last."*"]
x = +1_000.5e-3'''


def at(table: Any, path: Path) -> Any:
    for key in path:
        table = table[key]
    return table


@pytest.mark.parametrize(
    "text", [AWKWARD, AWKWARD.replace("\n", "\r\n"), WHOLE.decode(), "", "\n\n# x", "a=1"]
)
def test_every_value_is_found_where_it_stands(text: str) -> None:
    table, found = tomllib.loads(text), places(text)
    with_value = {path: spot for path, spot in found.items() if spot.start >= 0}
    for path, spot in with_value.items():
        assert tomllib.loads(f"v = {text[spot.start : spot.end]}")["v"] == at(table, path)
        assert spot.line == text[: spot.start].count("\n") + 1
    assert set(leaves(table)) <= set(with_value)


def leaves(value: Any, path: Path = ()) -> list[Path]:
    """The paths of all values that are no tables of their own."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in leaves(inner, (*path, key))]
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return [one for i, inner in enumerate(value) for one in leaves(inner, (*path, i))]
    return [path]


def test_lines_are_those_that_an_editor_counts() -> None:
    found = places(AWKWARD)
    lines = {path: spot.line for path, spot in found.items()}
    assert lines["check",] == 3
    assert lines["check", "traces", 1] == 5
    assert lines["check", 'quo"ted.key', "inner"] == 6
    assert lines["check", "lit.eral"] == 10
    assert lines["many", 1, "below", "deep", "er", "z", "w"] == 18
    assert lines["last", "*"] == 22


NAMES = st.text("ab.\"'#[]=é \\\t", max_size=5)
SCALARS = st.one_of(st.integers(-99, 99), st.booleans(), st.text("a\"'#]}[{,=\\\n é", max_size=6))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
SPACE = st.sampled_from(["", " ", "\t "])
LINE_END = st.sampled_from(["\n", " # ]}\"'\n", "\r\n", "\n\n# [x]\n"])


def string(text: str) -> str:
    """A basic string."""
    signs = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(signs.get(sign, sign) for sign in text) + '"'


def written(value: Any, draw: Any) -> str:
    """A value in TOML, laid out by chance."""
    gap = draw(SPACE)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        is_literal = "'" not in value and "\n" not in value and draw(st.booleans())
        return f"'{value}'" if is_literal else string(value)
    if isinstance(value, list):
        end = draw(LINE_END)
        return "[" + end + "".join(f"{gap}{written(one, draw)}{gap},{end}" for one in value) + gap + "]"
    pairs = f"{gap},{gap}".join(f"{string(k)}{gap}={gap}{written(v, draw)}" for k, v in value.items())
    return "{" + gap + pairs + gap + "}"


@given(st.data(), st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=4), max_size=3))
def test_values_are_found_in_any_layout(data: st.DataObject, tables: dict[str, dict[str, Any]]) -> None:
    text = ""
    for name, table in tables.items():
        text += f"[{data.draw(SPACE)}{string(name)}{data.draw(SPACE)}]{data.draw(LINE_END)}"
        for key, value in table.items():
            gap = data.draw(SPACE)
            text += f"{gap}{string(key)}{gap}={gap}{written(value, data.draw)}{data.draw(LINE_END)}"
    parsed, found = tomllib.loads(text), places(text)
    for path, spot in found.items():
        if spot.start >= 0:
            assert tomllib.loads(f"v = {text[spot.start : spot.end]}")["v"] == at(parsed, path)
            assert text.count("\n", 0, spot.start) >= spot.line - 1
    assert {(name, key) for name, table in tables.items() for key in table} <= set(found)
