"""Which kernels run is chosen by one variable, told by --version, and an error where it cannot be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from stepcrit import kernels
from stepcrit.cli.main import run

SCAN = "stepcrit.kernels._scan"


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    """What is built is looked up once a process; here it changes."""
    kernels._absent.cache_clear()
    yield
    kernels._absent.cache_clear()


def put(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None) -> None:
    """Have a module stand for the compiled kernels, or none."""
    monkeypatch.setitem(sys.modules, SCAN, module)
    if module is None:
        monkeypatch.delattr(kernels, "_scan", raising=False)
    else:
        monkeypatch.setattr(kernels, "_scan", module, raising=False)


def built(revision: int) -> ModuleType:
    """Compiled kernels of a revision."""
    module = ModuleType(SCAN)
    module.REVISION = revision  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    ("asked", "is_built", "runs"),
    [
        ("", True, "compiled"),
        ("", False, "plain"),
        ("plain", True, "plain"),
        ("plain", False, "plain"),
        ("compiled", True, "compiled"),
    ],
)
def test_compiled_kernels_run_where_they_are_built_and_nobody_asks_for_the_plain_ones(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: str,
    runs: str,
    *,
    is_built: bool,
) -> None:
    put(monkeypatch, built(kernels.REVISIONS["scan"]) if is_built else None)
    monkeypatch.setenv(kernels.VARIABLE, asked)
    assert kernels.chosen() == runs
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f", {runs} kernels)\n")


def test_asking_for_compiled_kernels_where_there_are_none_is_wrong_use_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(monkeypatch, None)
    monkeypatch.setenv(kernels.VARIABLE, "compiled")
    for argv in (["--version"], ["analyze", "absent.json"], ["explain"]):
        assert run(argv) == 2
        told = capsys.readouterr()
        assert (told.out, "this installation has none" in told.err, "C compiler" in told.err) == (
            "",
            True,
            True,
        )


def test_kernels_that_were_built_from_other_text_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, built(kernels.REVISIONS["scan"] + 1))
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    assert kernels.chosen() == "plain"


@pytest.mark.parametrize(
    ("asked", "meant"), [("plan", "plain"), ("Compiled", "compiled"), ("c", ""), ("0", "")]
)
def test_another_word_is_wrong_use_and_the_nearest_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: str, meant: str
) -> None:
    monkeypatch.setenv(kernels.VARIABLE, asked)
    assert run(["--version"]) == 2
    told = capsys.readouterr().err
    assert repr(asked) in told
    assert ("Did you mean" in told) == bool(meant)
    assert f"Did you mean {meant!r}?" in told or not meant
    assert "Set it to plain or compiled" in told


def test_help_is_given_whatever_the_variable_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(kernels.VARIABLE, "fast")
    assert run(["--help"]) == 0
    assert capsys.readouterr().err == ""
