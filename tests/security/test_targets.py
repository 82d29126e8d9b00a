"""No output touches an input, whatever the input is called; what is written has the rights of a new file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepcrit.cli.main import run
from tests.security.hostile_trace import hostile_trace

CHANGE = ("--shrink", "aten::copy_=0.5")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a trace, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("t.json").write_bytes(hostile_trace().content)
    os.link("t.json", "hard.json")
    Path("soft.json").symlink_to("t.json")
    Path("far.json").symlink_to("soft.json")
    Path("folder").mkdir()
    os.link("t.json", "folder/inside.json")
    Path("linked").symlink_to("folder")
    return tmp_path / "here"


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "target",
    ["t.json", "./t.json", "folder/../t.json", "hard.json", "soft.json", "far.json", "linked/inside.json"],
)
@pytest.mark.parametrize("source", ["t.json", "soft.json", "hard.json", "folder", "linked"])
@pytest.mark.parametrize("verb", ["analyze", "critical", "doctor", "whatif", "slim"])
def test_an_output_that_is_the_input_is_refused(
    here: Path, verb: str, source: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(here)
    change = CHANGE if verb == "whatif" else ("--force",) if verb == "slim" else ()
    assert run([verb, source, *change, "-o", target]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert content(here) == before


def test_slim_replaces_no_file_unless_it_is_forced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.json.gz").write_bytes(b"old")
    before = content(here)
    assert run(["slim", "t.json", "-o", "old.json.gz"]) == 2
    assert "there already" in capsys.readouterr().err
    assert content(here) == before
    assert run(["slim", "t.json", "-o", "old.json.gz", "--force"]) == 0
    assert Path("old.json.gz").read_bytes() != b"old"
    assert run(["slim", "t.json"]) == 0
    assert set(content(here)) - set(before) == {"t.slim.json.gz"}
    assert run(["slim", "t.json"]) == 2


def test_a_key_is_an_input(here: Path) -> None:
    Path("key").write_bytes(bytes(range(40)))
    before = content(here)
    assert run(["slim", "t.json", "--key-file", "key", "-o", "key", "--force"]) == 2
    assert content(here) == before


@pytest.mark.parametrize(
    "target", ["t.json", "folder/../t.json", "hard.json", "far.json", "linked/inside.json", "own.toml"]
)
@pytest.mark.parametrize("option", ["-o", "--junit"])
def test_no_output_of_check_is_a_trace_or_its_budgets(
    here: Path, option: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.toml").write_text("[budget.'*']\nstreams = { max = 1 }\n", encoding="utf-8")
    before = content(here)
    other = ("--junit", "x.xml") if option == "-o" else ("-o", "x.txt")
    assert run(["check", "soft.json", "--config", "own.toml", option, target, *other]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert content(here) == before


@pytest.mark.parametrize(
    "target",
    ["t.json", "hard.json", "soft.json", "other.json", "linked/inside.json", "p.json", "stepcrit.toml"],
)
@pytest.mark.parametrize("named", [("t.json", "other.json"), ("other.json", "folder")])
def test_an_output_that_is_either_side_of_a_comparison_is_refused(
    here: Path, named: tuple[str, str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.json").write_bytes(hostile_trace(1).content)
    Path("stepcrit.toml").write_text("", encoding="utf-8")
    assert run(["whatif", "t.json", *CHANGE, "--save", "p.json"]) == 0
    before = content(here)
    sides = ["--base", named[0], "--new", named[1], "--prediction", "p.json"]
    assert run(["diff", *sides, "-o", target]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert content(here) == before


@pytest.mark.parametrize(("one", "other"), [("p", "p"), ("p", "./p"), ("folder/p", "linked/p")])
def test_verdicts_in_two_formats_have_each_their_own_file(here: Path, one: str, other: str) -> None:
    before = content(here)
    assert run(["check", "t.json", "--base", ".", "-o", one, "--junit", other]) == 2
    assert content(here) == before


@pytest.mark.parametrize("target", ["t.json", "hard.json", "soft.json"])
@pytest.mark.parametrize("option", ["-o", "--save"])
def test_neither_file_is_written_where_one_is_the_input(here: Path, target: str, option: str) -> None:
    before = content(here)
    other = ("--save", "p.json") if option == "-o" else ("-o", "o.json")
    assert run(["whatif", "t.json", *CHANGE, option, target, *other]) == 2
    assert content(here) == before


@pytest.mark.parametrize("target", ["t.json", "hard.json", "soft.json"])
def test_what_stdin_was_opened_from_is_an_input(here: Path, target: str) -> None:
    before = content(here)
    with Path("t.json").open("rb") as trace:
        command = [sys.executable, "-m", "stepcrit", "analyze", "-", "-o", target]
        done = subprocess.run(command, stdin=trace, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert content(here) == before


@pytest.mark.parametrize("option", ["-o", "--save"])
@pytest.mark.parametrize("target", ["stepcrit.toml", "alias"])
def test_the_configuration_is_an_input(here: Path, option: str, target: str) -> None:
    Path("stepcrit.toml").write_text("[check]\ntraces = 't.json'\n", encoding="utf-8")
    Path("alias").symlink_to("stepcrit.toml")
    before = content(here)
    assert run(["whatif", *CHANGE, option, target]) == 2
    assert content(here) == before


@pytest.mark.parametrize(
    ("saved", "output"), [("p", "p"), ("p", "./p"), ("folder/p", "linked/p"), ("linked/p", "folder/p")]
)
def test_a_prediction_and_an_answer_have_each_their_own_file(here: Path, saved: str, output: str) -> None:
    before = content(here)
    assert run(["whatif", "t.json", *CHANGE, "--save", saved, "-o", output]) == 2
    assert content(here) == before


def test_an_answer_may_replace_an_older_one_in_the_folder_of_the_trace() -> None:
    Path("folder/old.md").write_text("old", encoding="utf-8")
    assert run(["analyze", "folder", "-o", "folder/old.md"]) == 0
    assert Path("folder/old.md").read_text(encoding="utf-8") != "old"


@pytest.mark.parametrize("named", ["nowhere", "other"])
def test_a_link_is_replaced_and_what_it_names_is_left(named: str) -> None:
    """A link at the target is not followed: a file elsewhere would be overwritten in its stead."""
    Path("other").write_bytes(b"other")
    Path("link").symlink_to(named)
    assert run(["doctor", "t.json", "-o", "link"]) == 0
    assert not Path("link").is_symlink()
    assert Path("link").read_bytes().startswith(b"t.json: ")
    assert Path("other").read_bytes() == b"other"
    assert not Path("nowhere").exists()


@pytest.mark.parametrize(
    ("target", "code"), [("missing/o.txt", 5), ("folder", 5), ("linked", 5), ("t.json/o.txt", 5)]
)
def test_a_place_where_no_file_can_be_is_an_output_error(here: Path, target: str, code: int) -> None:
    before = content(here)
    assert run(["doctor", "t.json", "-o", target]) == code
    assert content(here) == before


@pytest.mark.parametrize(("umask", "rights"), [(0o077, 0o600), (0o022, 0o644), (0o000, 0o666)])
def test_a_new_file_has_the_rights_that_the_umask_leaves(umask: int, rights: int) -> None:
    before = os.umask(umask)
    try:
        assert run(["whatif", "t.json", *CHANGE, "--save", "p.json", "-o", "o.json"]) == 0
    finally:
        os.umask(before)
    assert [Path(name).stat().st_mode & 0o777 for name in ("p.json", "o.json")] == [rights, rights]


def test_the_draft_is_never_more_open_than_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the target, created by us: nobody's link is followed on the way."""
    seen = []

    really = os.replace

    def replace(name: str, target: str) -> None:
        draft = Path(name)
        seen.append((draft.parent == Path(target).parent, draft.is_symlink(), draft.stat().st_mode & 0o777))
        really(name, target)

    monkeypatch.setattr(os, "replace", replace)
    before = os.umask(0o077)
    try:
        assert run(["doctor", "t.json", "-o", "o.txt"]) == 0
    finally:
        os.umask(before)
    assert seen == [(True, False, 0o600)]


def test_the_folder_of_the_cache_is_the_users_own(tmp_path: Path) -> None:
    assert run(["doctor", "t.json"]) == 0
    assert run(["analyze", "t.json"]) == 0
    assert (tmp_path / "cache" / "stepcrit").stat().st_mode & 0o777 == 0o700
    shutil.rmtree(tmp_path / "cache")


def test_a_link_that_waits_where_the_draft_will_be_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its name is drawn by chance; here somebody has guessed it."""
    monkeypatch.setattr(os, "urandom", bytes)
    Path("victim").write_text("mine", encoding="utf-8")
    Path(".o.txt.00000000.part").symlink_to("victim")
    assert run(["doctor", "t.json", "-o", "o.txt"]) == 5
    assert Path("victim").read_text(encoding="utf-8") == "mine"
    assert not Path("o.txt").exists()
    assert "cannot write" in capsys.readouterr().err
