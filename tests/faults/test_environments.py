"""F12, F14, F29: homes, users and folders that are not there, encodings, and the interpreter's own switches."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepcrit.cli.main import run
from tests.faults.conftest import TRACE
from tests.faults.nursery import ROOT, Nursery
from tests.faults.test_streams import ASKED

FORMATS = ("text", "json", "md", "csv")
NO_ENTRY = 54321
"""A user that has no entry in the system's list."""

HOMELESS = {"HOME": None, "XDG_CACHE_HOME": None, "USER": None, "LOGNAME": None, "TMPDIR": None}


# --- homes, users, folders -------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    [
        HOMELESS,
        {**HOMELESS, "HOME": "/proc/self/nosuch"},
        {**HOMELESS, "HOME": "/proc/self"},
        {**HOMELESS, "HOME": "", "TMPDIR": "/nosuch"},
        {**HOMELESS, "XDG_CACHE_HOME": "/dev/full"},
        {**HOMELESS, "XDG_CACHE_HOME": "relative"},
    ],
)
@pytest.mark.parametrize("is_stranger", [True, False])
def test_without_a_home_the_answers_are_the_same(
    nursery: Nursery, tmp_path: Path, env: dict[str, str | None], *, is_stranger: bool
) -> None:
    if is_stranger and os.getuid():
        pytest.skip("only root may become another user")
    tmp_path.chmod(0o555)
    given = {"env": env, "cwd": str(tmp_path if not is_stranger else "/")}
    for words in (ASKED["analyze"], ASKED["doctor"]):
        usual = nursery.usual(*words)
        done = nursery.run(*words, **given, **({"uid": NO_ENTRY} if is_stranger else {}))
        assert (done.code, done.out, done.err) == (0, usual.out, usual.err)


def test_without_a_home_there_is_no_last_trace(nursery: Nursery) -> None:
    env = {**HOMELESS, "HOME": "/proc/self"}
    assert nursery.run(*ASKED["analyze"], env=env, cwd="/").code == 0
    done = nursery.run("whatif", "--rank", env=env, cwd="/")
    assert (done.code, done.out) == (2, b"")
    assert b"no trace given" in done.err


def test_a_folder_that_is_no_longer_there_is_no_hindrance(tmp_path: Path) -> None:
    line = f'mkdir gone; cd gone; rmdir ../gone; "{sys.executable}" -m stepcrit doctor "{TRACE}" --json'
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["data"]


def test_a_folder_where_nothing_may_be_written_is_read_from(nursery: Nursery, tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "t.json.gz")
    tmp_path.chmod(0o555)
    done = nursery.run("analyze", "t.json.gz", "--json", cwd=str(tmp_path))
    tmp_path.chmod(0o755)
    assert (done.code, done.err) == (0, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["t.json.gz"]


# --- encodings -------------------------------------------------------------------------------

NAME = "“日😀”::"


@pytest.fixture(scope="module")
def foreign_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with names that ASCII lacks."""
    text = gzip.decompress(TRACE.read_bytes()).decode().replace("aten::", NAME)
    path = tmp_path_factory.mktemp("foreign") / "trace.json"
    path.write_text(text, encoding="utf-8")
    return path


LANGUAGE: dict[str, str | None] = dict.fromkeys(
    ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE")
)
ASCII: dict[str, dict[str, str]] = {
    "C": {"LC_ALL": "C"},
    "POSIX, as it is": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ascii:strict": {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"},
}
"""Where only ASCII can be read."""


def of(env: dict[str, str], folder: Path) -> Iterator[Nursery]:
    one = Nursery(folder, **{**LANGUAGE, **env})
    yield one
    one.close()


@pytest.fixture(scope="module", params=ASCII)
def narrow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Children of an interpreter whose streams take ASCII."""
    yield from of(ASCII[request.param], tmp_path_factory.mktemp("narrow"))


def test_where_only_ascii_can_be_read_only_ascii_is_written(narrow: Nursery) -> None:
    for words, code in [
        (("--help",), 0),
        (("whatif", "--help"), 0),
        (("explain",), 0),
        (("explain", "numbers"), 0),
        (("demo",), 0),
        (("analyse·",), 2),
        (("explain", "µ"), 2),
        (("no/µ",), 3),
        (("no/\udcff",), 3),
    ]:
        done = narrow.run(*words)
        assert (words, done.code) == (words, code)
        assert done.out.isascii()
        assert done.err.isascii()


def test_every_format_tells_foreign_names_there_as_escapes(
    narrow: Nursery, foreign_trace: Path, tmp_path: Path
) -> None:
    for fmt in FORMATS:
        done = narrow.run("analyze", str(foreign_trace), "--format", fmt)
        assert (done.code, done.err) == (0, b"")
        assert done.out.isascii()
        assert (b"\\u65e5\\ud83d\\ude00" if fmt == "json" else b"\\u{65e5}\\u{1f600}") in done.out
        if fmt == "json":
            assert run(["analyze", str(foreign_trace), "-o", str(tmp_path / "a.json")]) == 0
            usual = (tmp_path / "a.json").read_bytes()
            assert not usual.isascii()
            assert json.loads(done.out) == json.loads(usual)


def test_a_file_is_utf_8_there_as_well(narrow: Nursery, foreign_trace: Path, tmp_path: Path) -> None:
    for suffix in ("txt", "json", "md", "csv"):
        ours, usual = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
        assert narrow.run("analyze", str(foreign_trace), "-o", str(ours)).code == 0
        assert run(["analyze", str(foreign_trace), "-o", str(usual)]) == 0
        assert ours.read_bytes() == usual.read_bytes()
        assert "日😀" in ours.read_text(encoding="utf-8")


@pytest.mark.parametrize("env", [{}, {"PYTHONUTF8": "1", "LC_ALL": "C"}])
def test_without_a_language_utf_8_is_written(
    foreign_trace: Path, tmp_path: Path, env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    one = Nursery(tmp_path, loaded=False, **{**LANGUAGE, **env})
    done = one.run("analyze", str(foreign_trace))
    one.close()
    assert run(["analyze", str(foreign_trace)]) == 0
    assert (done.code, done.out.decode()) == (0, capsys.readouterr().out)


def test_wide_streams_take_text_as_such_and_json_in_utf_8(
    foreign_trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Nursery(tmp_path, **{**LANGUAGE, "PYTHONIOENCODING": "utf-16"})
    for words in (("explain",), ("--version",), ("analyze", str(foreign_trace))):
        done = one.run(*words)
        assert run(list(words)) == 0
        assert (done.code, done.out.decode("utf-16")) == (0, capsys.readouterr().out)
    done = one.run("analyze", str(foreign_trace), "--json")
    assert done.code == 0
    assert NAME in done.out.decode()
    assert json.loads(done.out)["data"]
    done = one.run("no/µ")
    assert done.code == 3
    assert "no/µ" in done.err.decode("utf-16")
    one.close()


def test_a_code_page_has_some_of_our_signs_and_text_uses_none_of_them(
    foreign_trace: Path, tmp_path: Path
) -> None:
    one = Nursery(tmp_path, **{**LANGUAGE, "PYTHONIOENCODING": "cp1252"})
    text = one.run("analyze", str(foreign_trace))
    assert text.code == 0
    assert text.out.isascii()
    assert b"\\u{65e5}\\u{1f600}" in text.out
    for_machines = one.run("analyze", str(foreign_trace), "--json")
    assert for_machines.code == 0
    assert NAME in for_machines.out.decode()  # what a machine reads stays UTF-8
    refused = one.run("no/µ日")
    assert refused.code == 3
    assert "no/" in refused.err.decode("cp1252")
    one.close()


# --- the interpreter's switches --------------------------------------------------------------


QUESTIONS = [[*ASKED[name], "--json"] for name in ("analyze", "whatif", "doctor", "calc")]


@pytest.mark.parametrize("switches", [["-OO"], ["-W", "error", "-X", "dev"], ["-I", "-B", "-u"]])
def test_the_interpreters_switches_change_nothing(
    nursery: Nursery, tmp_path: Path, switches: list[str]
) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from stepcrit.cli.main import run\n"
        f"sys.exit(sum(run(argv) for argv in {QUESTIONS!r}))"
    )
    command = [sys.executable, *switches, "-c", code]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"".join(nursery.usual(*words).out for words in QUESTIONS)


def test_the_real_command_without_anything_around_it(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(ROOT)} if os.name == "posix" else dict(os.environ)
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "stepcrit", *ASKED["analyze"]]
    done = subprocess.run(
        [*command, "-o", "a.json"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**env, "HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert json.loads((tmp_path / "a.json").read_bytes())["data"]
