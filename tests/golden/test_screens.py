"""The screens users see, whole. A deliberate change is written with `make golden` and reviewed as a diff."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def update_golden() -> ModuleType:
    """The script that writes the golden screens: the commands are listed there, once."""
    spec = importlib.util.spec_from_file_location("update_golden", ROOT / "scripts" / "update_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = update_golden()


@pytest.mark.parametrize("name", sorted(SCRIPT.COMMANDS))
def test_a_command_prints_its_golden_screen(name: str) -> None:
    expected = (SCRIPT.SCREENS / f"{name}.txt").read_text(encoding="utf-8")
    assert SCRIPT.screen(SCRIPT.COMMANDS[name]) == expected


def test_every_golden_screen_has_its_command() -> None:
    assert {path.stem for path in SCRIPT.SCREENS.glob("*.txt")} == set(SCRIPT.COMMANDS)


def test_readme_shows_what_the_demo_prints() -> None:
    demo = (SCRIPT.SCREENS / "demo.txt").read_text(encoding="utf-8")
    assert (ROOT / "README.md").read_text(encoding="utf-8") == SCRIPT.readme_with(demo)
