"""Every null in an answer has its reason beside it, whatever the command and the trace."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from stepcrit.session import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
COMMANDS = [
    ("analyze", "{}"),
    ("critical", "{}"),
    ("critical", "{}", "--step={first}"),
    ("critical", "{}", "--around", "*"),
    ("whatif", "{}", "--shrink", "*=0.5", "--curve"),
    ("whatif", "{}", "--add", "*=1us"),
    ("whatif", "{}", "--shrink", "*=0.5", "--target", "1ns", "--model", "free"),
    ("whatif", "{}", "--rank"),
    ("whatif", "{}", "--target", "1ns"),
    ("whatif", "{}", "--inject", "*"),
    ("doctor", "{}"),
    ("check", "{}", "--base", "."),
    ("diff", "{}", "{}"),
    ("diff", "{}", str(FIXTURES / "simulated" / "item_sync.json.gz")),
]


def nulls(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from nulls(inner, f"{path}.{key}".lstrip("."))
    for inner in value if isinstance(value, list) else ():
        yield from nulls(inner, f"{path}[]")


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.json.gz")), ids=lambda path: path.name)
def test_every_null_has_a_reason(
    path: Path, argv: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)  # where no budgets are
    assert run([word.format(path, first=load(path).steps[0].label) for word in argv] + ["--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {one["path"] for one in answer["unknown"]} == set(nulls(answer["data"], ""))
