"""Hostile names through every command, format and refusal: they are shown, and do nothing.

A command that has no row in ROWS fails `test_every_command_has_a_row`; so does a row of no command.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import unicodedata
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import stepcrit
import stepcrit.report.write
from stepcrit.cli.main import program, run
from stepcrit.errors import ForeignInputError
from stepcrit.report.html import fragment
from stepcrit.report.safe import visible
from tests.ingest.gitmade import commit, new_repository, run_git
from tests.report.hostile import Tags
from tests.security.hostile_trace import CONTROLLING, WANTING, HostileTrace, hostile_trace

UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
TYPED = "\x1b]0;t\x07\u202e[red]%0A\n::error::u ##[v]\udcff"
"""What a user, or a script in the user's place, may type anywhere."""

ROUND = len(WANTING)
"""So many starts give each field each of the strings."""

ROWS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("analyze",): (
        "TRACE", "TRACE --by kernel", "TRACE --by class", "TRACE --by module", "TRACE --by line", "TRACE --stream 7",
        "TRACE --step LABEL", "TRACE --boundary update", "TRACE --boundary host", "TRACE --device-only --floors auto",
        "TRACE --step-regex ProfilerStep --optimizer-regex Optimizer", "FOLDER",
    ),
    ("critical",): (
        "TRACE", "TRACE --full", "TRACE --around OP", "TRACE --around KERNEL", "TRACE --around aten::*",
        "TRACE --step LABEL --boundary launch",
    ),
    ("whatif",): (
        "TRACE --shrink OP=0.5", "TRACE --speedup KERNEL=2x --curve", "TRACE --set module:MODULE=1us",
        "TRACE --add line:LINE=5us --side host", "TRACE --remove step:LABEL", "TRACE --shrink re:aten=0.5 --target 900us",
        "TRACE --shrink class:comm=0.5 --model comm:k=2", "TRACE --model queue:16", "TRACE --rank", "TRACE --rank --by kernel",
        "TRACE --rank --by module", "TRACE --rank --by line", "TRACE --rank --by collective", "TRACE --rank --by class",
        "TRACE --target 900us", "TRACE --target 900us --by module", "TRACE --inject OP", "TRACE --inject stream:20",
        "--shrink OP=0.5",
    ),
    ("diff",): (
        "TRACE TRACE", "TRACE FOLDER --threshold 5% --fail", "TRACE OTHER", "OTHER TRACE", "--base TRACE --new OTHER TRACE",
        "TRACE OTHER --boundary host", "TRACE OTHER --prediction PREDICTION",
    ),
    ("check",): ("TRACE --base . --show-passed", "TRACE --base . --steps all"),
    ("doctor",): ("TRACE", "FOLDER"),
    ("slim",): (),  # its answer is a trace: see below
    ("demo",): ("",),
    ("explain",): ("", "json", "SC200"),
    ("init",): ("in*/*.json -o -",),
    ("schema",): ("", "analyze", "config"),
    ("calc", "amdahl"): ("--part TYPED=40ms:2 --of 100ms", "--part =1+1=40ms:2 --part @SUM(1)=1ms:2 --of 100ms"),
    ("calc", "crossover"): ("--a 30s+1.0s --b 0s+1.2s --at 50",),
    ("calc", "roofline"): ("--intensity 2 --bandwidth 100GB/s --roof 1000GFLOP/s",),
    ("calc", "scaling"): ("--strong --run 8,100ms --run 16,60ms",),
}  # fmt: skip
"""Command -> what is typed behind it. A word in capitals stands for a hostile string."""

PLAIN = ("explain", "init", "schema")
"""Commands whose answer is no document: it has one form."""

REFUSED = (
    ("TYPED", 2), ("--TYPED", 2), ("analyze", 2), ("analyze ./TYPED", 3), ("TRACE TYPED", 2), ("analyze TRACE --step TYPED", 2),
    ("analyze TRACE --by TYPED", 2), ("analyze TRACE --stream TYPED", 2), ("analyze TRACE --boundary TYPED", 2),
    ("analyze TRACE --floors TYPED", 2), ("analyze TRACE --floors launch=TYPED", 2), ("analyze TRACE --format TYPED", 2),
    ("analyze TRACE --step-regex TYPED", 2), ("analyze TRACE --step-regex (TYPED", 2), ("analyze TRACE --optimizer-regex TYPED", 2),
    ("analyze TRACE -o FOLDER/TYPED/x.json", 5), ("analyze TRACE -o TRACE", 2), ("analyze TRACE --strict", 0),
    ("critical TRACE --around TYPED", 2), ("critical TRACE --step TYPED", 2), ("doctor TYPED", 3), ("demo TYPED", 2),
    ("doctor TRACE -o FOLDER", 5), ("slim ./TYPED", 3), ("slim TRACE TYPED", 2), ("slim TRACE --steps TYPED", 2),
    ("slim TRACE --key-file TYPED", 2), ("slim TRACE --check --max-size TYPED", 2), ("slim TRACE -o TRACE", 2),
    ("slim TRACE -o FOLDER/TYPED/x.json.gz", 5), ("slim FOLDER", 2), ("slim --check ./TYPED", 3),
    ("whatif TRACE --shrink TYPED", 2), ("whatif TRACE --shrink TYPED=0.5", 2), ("whatif TRACE --shrink OP=TYPED", 2),
    ("whatif TRACE --shrink module:TYPED=0.5", 2), ("whatif TRACE --shrink line:TYPED=0.5", 2),
    ("whatif TRACE --shrink step:TYPED=0.5", 2), ("whatif TRACE --shrink class:TYPED=0.5", 2),
    ("whatif TRACE --shrink stream:TYPED=0.5", 2), ("whatif TRACE --shrink re:(TYPED=0.5", 2),
    ("whatif TRACE --shrink re:TYPED=0.5", 2), ("whatif TRACE --speedup OP=TYPED", 2), ("whatif TRACE --set OP=TYPED", 2),
    ("whatif TRACE --model TYPED", 2), ("whatif TRACE --model queue:TYPED", 2), ("whatif TRACE --target TYPED", 2),
    ("whatif TRACE --rank --by TYPED", 2), ("whatif TRACE --inject TYPED", 2), ("whatif TRACE --shrink OP=0.5 --save FOLDER/TYPED/x", 5),
    ("whatif TRACE --shrink aten:=0.5", 2), ("whatif TRACE --shrink modul=0.5", 2),
    ("diff", 2), ("diff TRACE", 2), ("diff TYPED TYPED", 3), ("diff TRACE ./TYPED", 3), ("diff TRACE TRACE TRACE", 2),
    ("diff TRACE TRACE --threshold TYPED", 2), ("diff TRACE TRACE --prediction TRACE", 2), ("diff TRACE TRACE --prediction TYPED", 2),
    ("diff --base TRACE", 2), ("diff --base TRACE --new TYPED", 3), ("diff TRACE TRACE -o FOLDER/TYPED/x.json", 5),
    ("diff TRACE TRACE -o TRACE", 2),
    ("check TYPED", 2), ("check TRACE --config TYPED", 2), ("check TRACE --base TYPED", 2), ("check TRACE --steps TYPED", 2),
    ("check TRACE --base . --junit FOLDER/TYPED/x.xml", 5), ("check TRACE --base . --junit TRACE", 2), ("check TYPED*", 2),
    ("explain TYPED", 2), ("explain jsonTYPED", 2), ("schema TYPED", 2), ("init TYPED", 2), ("init TRACE", 2), ("init in*/*.json -o FOLDER/TYPED/x", 5), ("init TRACE -o TRACE --force", 2), ("schema analyze -o FOLDER/TYPED/x", 5),
    ("calc TYPED", 2), ("calc amdahl --part TYPED --of 1ms", 2), ("calc amdahl --part a=1ms:TYPED --of 1ms", 2),
    ("calc amdahl --observed TYPED --op-speedup 2", 2), ("calc crossover --a TYPED --b 0s+1s", 2),
    ("calc crossover --a 1s+TYPED --b 0s+1s", 2), ("calc roofline --gemm TYPED --bandwidth 1GB/s --roof 1GFLOP/s", 2),
    ("calc roofline --gemm 1,1,1 --dtype TYPED --bandwidth 1GB/s --roof 1GFLOP/s", 2),
    ("calc roofline --intensity 1 --bandwidth TYPED --roof 1GFLOP/s", 2), ("calc scaling --strong --run TYPED", 2),
    ("calc scaling --serial TYPED --at 2", 2), ("calc scaling --steps-min 1 --critical-batch 1 --batch 1,TYPED", 2),
)  # fmt: skip
"""What is refused, with its exit code."""

CONTENTS = (
    b"TYPED", b'{"TYPED": 1}', b'{"traceEvents": [{"ph": "TYPED"}], "TYPED": "TYPED"}', b'{"schema": "TYPED", "nodes": []}',
    b"\x1f\x8b\x08\x00TYPED", b'{"traceEvents": [{"name": "TYPED", "ph": "X", "ts": "TYPED", "dur": "TYPED", "pid": "TYPED"}]}',
    b'{"traceEvents": [{"name": "TYPED", TYPED', b"\x1b]0;\x07\x9b\xff\n::error::w", b'[{"TYPED": "\\ud800"}]',
)  # fmt: skip
"""Files that are no trace."""


PREDICTION = {
    "schema": "stepcrit/prediction/1",
    "inputs": [{"name": "\x1b]0;t\x07\u202e[red]%0A\n::error::u ##[v]", "sha256": "\n::error::s"}],
    "data": {
        "period_ns": 9, "saving_ns": {"low": 1, "high": 2}, "ceiling_ns": 3, "boundary": "device",
        "asked": {"changes": [{"option": "--shrink\x9b", "value": "\n::error::v ##[w]<b>@x"}]},
    },
}  # fmt: skip
"""What somebody else may have written as a prediction."""


class Place:
    """A folder to be in, with a hostile trace under a hostile name."""

    def __init__(self, folder: Path, trace: HostileTrace, other: HostileTrace) -> None:
        self.words = {
            "TRACE": str(folder / f"{TYPED.replace('/', '')}.json"),
            "FOLDER": str(folder / "in \u202e"),
            "OTHER": str(folder / "other \u202e.json"), "PREDICTION": str(folder / "said \x9b.json"),
            "OP": trace.op, "KERNEL": trace.kernel, "MODULE": trace.module, "LINE": trace.line,
            "LABEL": trace.steps[2], "TYPED": TYPED,
        }  # fmt: skip
        self.trace, self.folder = trace, folder
        Path(self.words["FOLDER"]).mkdir()
        inside = Path(self.words["FOLDER"]) / "\x9b.json"
        for path in (self.words["TRACE"], inside):
            Path(path).write_bytes(trace.content)
        Path(self.words["OTHER"]).write_bytes(other.content)
        Path(self.words["PREDICTION"]).write_text(json.dumps(PREDICTION), encoding="utf-8")

    def argv(self, template: str) -> list[str]:
        """The words of a template; a hostile string stays one word, whatever blanks are in it."""
        marked = re.compile(rf"(?<![A-Z])({'|'.join(self.words)})(?![A-Z])")
        return [marked.sub(lambda found: self.words[found[0]], word) for word in template.split()]

    def files(self) -> set[str]:
        """Every path below the folder."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    start = zlib.crc32(request.node.name.encode()) % ROUND  # another field is another string's in each test
    yield Place(tmp_path / "here", hostile_trace(start), hostile_trace(start + 1))
    shutil.rmtree(tmp_path)


def said(capsys: pytest.CaptureFixture[str], argv: list[str], code: int = 0) -> tuple[str, str]:
    """What a command writes; on its way it is checked for what no stream may hold."""
    got = run(argv)
    out, err = capsys.readouterr()
    assert got == code, err
    for text in (out, err):
        check_prints(text)
    assert "Traceback" not in err
    return out, err


def check_prints(text: str) -> None:
    """Nothing in a text acts on a terminal or a CI runner."""
    raw = {c for c in text if c != "\n" and unicodedata.category(c) in UNSAFE}
    assert raw == set()
    assert "##[" not in text
    assert [line for line in text.split("\n") if line.lstrip().startswith("::")] == []


def check_unbroken(err: str) -> None:
    """A line end that was typed or read has broken no line of ours: what stood behind it would look like our words."""
    assert [line for line in err.split("\n") if line.lstrip().startswith(".:")] == []


ANSWERED = [(command, typed) for command, several in ROWS.items() for typed in several]


def command_paths(command: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of the program, as it is typed."""
    inside = getattr(command, "commands", None)
    if inside is None:
        yield before
        return
    for name, one in inside.items():
        yield from command_paths(one, (*before, name))


def test_every_command_has_a_row() -> None:
    assert set(command_paths(typer.main.get_command(program()))) == set(ROWS)


@pytest.fixture(params=ANSWERED, ids=lambda row: " ".join((*row[0], row[1])))
def asked(request: pytest.FixtureRequest, place: Place, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """A command line that is answered."""
    command, typed = request.param
    if command == ("whatif",) and "TRACE" not in typed:
        assert run(["analyze", place.words["TRACE"]]) == 0  # the last one analyzed is meant
        capsys.readouterr()
    return [*command, *place.argv(typed)]


def test_nothing_acts_in_any_format(
    asked: list[str], place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.files()
    said(capsys, asked)
    if asked[0] not in PLAIN:
        for fmt, check in FORMATS.items():
            check(said(capsys, [*asked, "--format", fmt])[0])
        monkeypatch.setattr(stepcrit.report.write, "render", lambda document, *_: fragment(document).encode())
        check_html(said(capsys, asked)[0])
    assert place.files() == before


def test_nothing_but_colour_is_added_on_any_terminal(
    asked: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for width in ("20", "80", "200"):
        monkeypatch.setenv("COLUMNS", width)
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert run(asked) == 0
        out, err = capsys.readouterr()
        assert "\x1b" in out or asked[0] in PLAIN
        check_prints(re.sub(r"\x1b\[[\d;]*m", "", out))
        check_prints(err)


@pytest.mark.parametrize("suffix", [".json", ".md", ".csv", ".txt"])
def test_a_file_holds_what_stdout_would_and_nothing_else_is_written(
    place: Place, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, typed in ((command, several[0]) for command, several in ROWS.items() if several):
        if command[0] in PLAIN or command == ("slim",):
            continue
        asked, out = [*command, *place.argv(typed)], f"out-{'-'.join(command)}{suffix}"
        before = place.files()
        assert said(capsys, [*asked, "-o", out])[0] == ""
        fmt = "text" if suffix == ".txt" else suffix[1:]
        assert Path(out).read_text(encoding="utf-8") == said(capsys, [*asked, "--format", fmt])[0]
        assert place.files() == before | {out}


def test_a_slimmed_trace_is_told_of_in_harmless_words_and_is_all_that_is_written(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    before = place.files()
    out, err = said(capsys, place.argv("slim TRACE -o small.json.gz --steps LABEL --stacks --anonymize"))
    assert (out, place.files()) == ("", before | {"small.json.gz"})
    check_unbroken(err)
    assert "replaced: " in err
    out, err = said(capsys, place.argv("slim --check TRACE FOLDER/\x9b.json small.json.gz"), 1)
    assert out.count("it tells where it was recorded") == 2
    check_unbroken(out)
    said(capsys, ["analyze", "small.json.gz"])


def test_a_prediction_is_as_harmless(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, place.argv("whatif TRACE --shrink OP=0.5 --save kept.json"))
    kept = Path("kept.json").read_text(encoding="utf-8")
    check_prints(kept)
    check_json(kept)


@pytest.mark.parametrize(("typed", "code"), REFUSED, ids=[typed for typed, _ in REFUSED])
def test_a_refusal_repeats_and_does_nothing(
    place: Place, typed: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = place.files()
    out, err = said(capsys, place.argv(typed), code)
    assert bool(out) == (code == 0)
    assert bool(err) == (code != 0)
    if not err.startswith("Usage"):  # what typer words is guarded by line, what we word by piece
        check_unbroken(err)
    assert place.files() == before


def test_every_part_of_a_refusal_is_made_harmless(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ForeignInputError(f"what {TYPED}", where=f"where {TYPED}", do=f"do {TYPED}")

    monkeypatch.setattr("stepcrit.session.read_trace", refuse)
    err = said(capsys, place.argv("analyze TRACE"), 3)[1]
    check_unbroken(err)
    assert len(err.splitlines()) == 3


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("verb", ["analyze", "doctor"])
def test_what_is_no_trace_is_refused_as_harmlessly(
    place: Place, content: bytes, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        json.dumps(TYPED)[1:-1].encode()
        if content.startswith((b"{", b"["))
        else TYPED.encode("utf-8", "replace")
    )
    Path(place.words["TRACE"]).write_bytes(content.replace(b"TYPED", text))
    got = run([verb, place.words["TRACE"]])
    out, err = capsys.readouterr()
    assert got in (0, 3)
    check_prints(out)
    check_prints(err)


@pytest.mark.parametrize(
    "toml",
    [
        b'[check]\ntraces = ["a\\u001b\\n::error::x*", "##[y]"]', b'"\\u009b" = 1\n[check]\ntraces = "\\u202e/\\n::z"',
        b"\x1b]0;\x07 = [", b"[\xff", b'[check]\ntraces = ["*.json", "in*/*"]',
    ],
)  # fmt: skip
def test_a_hostile_configuration_is_told_harmlessly(
    place: Place, toml: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stepcrit.toml").write_bytes(toml)
    said(capsys, place.argv("whatif --shrink OP=0.5"), 2)


HOSTILE = json.dumps(TYPED.replace("\udcff", ""))  # as a string of TOML
BUDGETS = (
    f"[budget.'*']\n{HOSTILE} = {{ max = 1 }}", f"[budget.'*']\nstreams = {{ max = {HOSTILE} }}", f"[budget.'*']\nstreams = {HOSTILE}",
    f"[budget.{HOSTILE}]\nstreams = {{ max = 1 }}\n[budget.'*']\nx = 1", f"{HOSTILE} = 1", f"[check]\n{HOSTILE} = 1", f"[watch]\n{HOSTILE} = 1",
    f"[check]\nsteps = {HOSTILE}", f"[check]\nbase = {HOSTILE}", "[budget.'*']\n'critical{class=\u202e}' = { max = 1 }",
)  # fmt: skip


@pytest.mark.parametrize("toml", BUDGETS)
def test_hostile_budgets_are_refused_harmlessly(
    place: Place, toml: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stepcrit.toml").write_text(toml, encoding="utf-8")
    out, err = said(capsys, place.argv("check TRACE"), 2)
    assert out == ""
    check_unbroken(err)


def test_hostile_words_of_a_repository_act_in_no_format(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of traces, of code and of operators; in the tree, at the base, new, gone, stale and unreadable."""
    word = "x\x1b]0;t\x07\u202e%0A\n::error::u ##[v]"
    here = new_repository(place.folder)
    trace = place.trace.content
    files = {f"{word}/{name}.json": trace for name in ("same", "gone", "other", "cut")}
    operator = json.dumps(f"critical{{op={place.trace.op}}}".encode("utf-8", "ignore").decode())
    toml = f"""[check]\ntraces = ["**/*.json"]\n[watch]\n"*" = ["**/*.py"]\n[budget."*"]\n{operator} = {{ max = 0 }}\n"""
    commit(here, {**files, f"{word}.py": b"1", "stepcrit.toml": toml.encode()})
    run_git(here, "branch", "base")
    commit(
        here,
        {
            f"{word}.py": b"2",
            f"{word}/cut.json": trace[:-9],
            f"{word}/new.json": trace,
            f"{word}/other.json": b"{}",
        },
    )
    Path(word, "gone.json").unlink()
    Path("stepcrit.toml").write_text(toml + "\n[budget.x]\n", encoding="utf-8")
    for fmt, check in FORMATS.items():
        check(said(capsys, ["check", "--base", "base", "--show-passed", "--format", fmt], 1)[0])
    said(capsys, ["check", "--base", "base"], 1)


def test_a_trace_that_was_found_is_named_harmlessly(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    Path("stepcrit.toml").write_text('[check]\ntraces = "in*/*"', encoding="utf-8")
    assert "\\x9b.json (stepcrit.toml)" in said(capsys, place.argv("whatif --shrink OP=0.5"))[1]
    Path("stepcrit.toml").unlink()
    said(capsys, place.argv("analyze TRACE"))
    err = said(capsys, place.argv("whatif --shrink OP=0.5"))[1]
    assert r"\x1b]0;t\x07\u{202e}" in err
    check_unbroken(err)
    Path(place.words["TRACE"]).unlink()
    assert r"\x1b]0;t\x07\u{202e}" in said(capsys, place.argv("whatif --shrink OP=0.5"), 2)[1]


def test_a_lone_surrogate_in_a_trace_reaches_no_stream(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    content = place.trace.content.replace(b"aten::", b"aten\\ud800::").replace(b"train.py", b"\\udfff.py")
    Path("t.json").write_bytes(content)
    for fmt in FORMATS:
        assert run(["analyze", "t.json", "--format", fmt]) in (0, 3)
        for text in capsys.readouterr():
            check_prints(text)


def test_the_library_shows_names_as_harmlessly(place: Place) -> None:
    trace = stepcrit.load(place.words["TRACE"])
    graph = trace.graph()
    path = graph.critical_path()
    for shown in (trace, graph, path):
        check_prints(repr(shown))
    for html in (trace._repr_html_(), path._repr_html_()):
        check_prints(html)
        check_html(html)


# --- what the checks above look at is really there -------------------------------------------


@pytest.fixture(scope="module")
def all_shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What analyze shows of each string in turn, whole."""
    path, out = (tmp_path_factory.mktemp("all") / name for name in ("t.json", "out.csv"))
    shown = ""
    for start in range(ROUND):
        path.write_bytes(hostile_trace(start).content)
        assert run(["analyze", str(path), "-o", str(out)]) == 0
        shown += out.read_text(encoding="utf-8")
    return shown


def test_every_controlling_character_comes_out_visible(all_shown: str) -> None:
    assert [hex(c) for c in CONTROLLING if visible(chr(c)) not in all_shown] == []


def test_what_prints_comes_out_as_it_is(all_shown: str) -> None:
    plain = [name for name in WANTING if name.isascii() and name.isprintable()]
    plain = [name for name in plain if "##[" not in name and '"' not in name]
    assert len(plain) > ROUND // 2
    assert [name for name in plain if name not in all_shown] == []


# --- what each format must not hold ----------------------------------------------------------


def check_text(text: str) -> None:
    """Markup is shown, not followed: nothing of rich's own ever errs or vanishes (see the tests of report)."""
    assert "MarkupError" not in text


def check_json(text: str) -> None:
    """Hostile strings stand only below the keys that are said to hold them."""
    answer = json.loads(text)
    ours = {key: value for key, value in answer.items() if key not in answer["untrusted"]}
    words = json.dumps(ours, ensure_ascii=False)
    wanting = [part.strip() for part in WANTING if len(part.strip()) > 4]
    assert [part for part in wanting if part in words or visible("\x1b") in words] == []
    assert set(answer["untrusted"]) <= set(answer)


def check_csv(text: str) -> None:
    """No cell is a formula."""
    for row in csv.reader(io.StringIO(text)):
        formulas = [c for c in row if re.match(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", c)]
        assert [c for c in formulas if not re.fullmatch(r"-?[\d.]+(e-?\d+)?", c)] == []


def check_markdown(text: str) -> None:
    """Outside of code there is no link, mention, image or tag, and each row has the cells of its header."""
    outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "code", text)
    outside = re.sub(r"</?(details|summary)>", "", outside)
    assert re.findall(r"(?<!\\)<|(?<!\\)@|(?<!\\)#\d|!\[|(?<!\\)\]\(|://|javascript:u", outside) == []
    cell = re.compile(r"(?<!\\)\|")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [len(cell.findall(row.replace("\\\\", ""))) for row in table.splitlines()]
        assert len(set(rows)) == 1
    assert [line for line in outside.split("\n") if re.match(r"#{1,2} ", line)] == []


def check_html(text: str) -> None:
    """Only our own tags and attributes: nothing runs, links or loads."""
    tags = Tags()
    tags.feed(text)
    assert tags.seen <= {"div", "b", "small", "table", "thead", "tbody", "tr", "th", "td", "span", "ul", "li"}
    assert tags.keys <= {"class", "style", "title", "colspan"}


FORMATS = {"text": check_text, "json": check_json, "md": check_markdown, "csv": check_csv}


def test_every_format_has_a_check() -> None:
    assert set(FORMATS) == set(stepcrit.report.write.RENDERERS)
