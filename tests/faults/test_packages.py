"""F5, F25, F27: packages that are not there, processes that are not started, a network that is not used."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import stepcrit
from stepcrit.cli.main import run
from tests.faults.nursery import ROOT, Nursery
from tests.faults.test_streams import ASKED

PACKAGE = Path(stepcrit.__file__).parent
LATE = ("numpy", "pandas", "networkx", "rich", "msgspec", "orjson", "regex", "platformdirs")
"""What stepcrit needs, but not from the start."""

NETWORK = {
    "socket",
    "ssl",
    "http",
    "urllib",
    "ftplib",
    "smtplib",
    "asyncio",
    "requests",
    "httpx",
    "socketserver",
}
PROCESSES = {"multiprocessing", "concurrent", "subprocess", "threading", "_thread", "joblib", "dask"}


MAY = {"gitrun.py": {"subprocess"}, "ahead.py": {"threading"}}
"""Git is asked what a trace was, and a packed trace is unpacked while it is read."""


def imported(path: Path) -> set[str]:
    """The packages that a file imports, wherever in it."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names: set[str] = set()
    for node in tree:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("forbidden", [NETWORK, PROCESSES], ids=["network", "processes"])
def test_no_file_of_the_package_imports_what_it_must_not_use(forbidden: set[str]) -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    found = {path.name: imported(path) & forbidden for path in files if imported(path) & forbidden}
    assert found == (MAY if forbidden is PROCESSES else {})


def test_a_test_that_reaches_for_the_network_fails() -> None:
    with socket.socket() as one, pytest.raises(RuntimeError, match="network"):
        one.connect(("127.0.0.1", 9))
    with pytest.raises(RuntimeError, match="network"):
        socket.getaddrinfo("localhost", 80)


# --- packages that are not there -------------------------------------------------------------


def without(missing: tuple[str, ...], argvs: list[list[str]]) -> list[tuple[int, str]]:
    """Exit code and stderr of commands, each in an interpreter's first use of what it needs."""
    code = (
        "import contextlib, io, sys\n"
        f"sys.modules.update(dict.fromkeys({missing!r}))\n"
        "from stepcrit.cli.main import run\n"
        "told = []\n"
        f"for argv in {argvs!r}:\n"
        "    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()):\n"
        "        told.append((run(argv), err.getvalue()))\n"
        "print(ascii(told))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return list(ast.literal_eval(done.stdout))


def test_help_version_and_explain_need_none_of_them() -> None:
    assert without(LATE, [["--help"], ["--version"], ["whatif", "--help"]]) == [(0, "")] * 3
    late = tuple(name for name in LATE if name != "msgspec")  # what a table is made of
    assert without(late, [["explain"], ["explain", "slack"]]) == [(0, "")] * 2


@pytest.mark.parametrize("package", ["numpy", "rich", "msgspec"])
def test_a_package_that_is_missing_is_named_with_what_to_install(package: str) -> None:
    for code, err in without((package,), [list(ASKED["analyze"]), ["demo"]]):
        assert code == 2
        assert err.startswith(f"error SC200: the package {package} is not installed\n  do ")
        assert f"pip install --force-reinstall {package}" in err


def test_commands_that_do_not_need_a_missing_package_work() -> None:
    told = without(("pandas", "networkx", "orjson"), [list(words) for words in ASKED.values()])
    assert told[:4] == [(0, "")] * 4
    assert {code for code, _ in told} == {0}
    ((code, err),) = without(("orjson",), [[*ASKED["analyze"], "--json"]])
    assert code == 2
    assert "orjson" in err


def test_without_the_package_that_finds_caches_the_trace_is_not_remembered_and_nothing_is_lost() -> None:
    assert without(("platformdirs",), [list(ASKED["analyze"])]) == [(0, "")]


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (
            'ImportError("libfoo.so is missing")',
            2,
            "the package broken cannot be loaded: libfoo.so is missing",
        ),
        ('ModuleNotFoundError("gone", name="deeper.part")', 2, "the package deeper is not installed"),
        ('ModuleNotFoundError("gone", name="stepcrit.nosuch")', 70, "this is a bug in stepcrit"),
    ],
)
def test_a_package_that_is_broken_is_the_installations_fault_and_a_module_of_ours_is_ours(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: str,
    code: int,
    says: str,
) -> None:
    import stepcrit.session  # noqa: PLC0415

    (tmp_path / "broken.py").write_text(f"raise {raised}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    monkeypatch.setattr(stepcrit.session, "read_trace", lambda *_, **__: __import__("broken"))
    assert run(list(ASKED["doctor"])) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err


def test_an_answer_needs_no_network(nursery: Nursery) -> None:
    for words in ASKED.values():
        done = nursery.run(*words, first=("without_network",))
        assert (done.code, done.out) == (0, nursery.usual(*words).out)
