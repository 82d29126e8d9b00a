"""Every known bug of other readers of traces has a test here, and no test means another one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent

ROWS = """
    b001 b003 b004 b006 b008 b009 b011 b013 b014 b015 b017 b018 b020 b022 b023 b025 b026 b028 b030 b031 b032
    b034 b035 b037 b038 b040 b041 b043 b045 b047 b048 b050 b052 b053 b055 b056 b058 b060 b062 b063 b065 b067
    b068 b070 b072 b073 b075 b077 b078 b080 b081 b083 b085 b086 b088 b089 b091 b093 b094 b096 b098 b099 b101
    b103 b104 b106 b108 b109 b111 b112 b114 b116 b117 b119 b120 b122 b124 b126 b127 b129 b130 b132 b133 b135
    b137 b138 b140 b141 b143 b145 b146 b148 b149 b151 b153 b154 b155 b157 b158 b160 b162 b163 b165 b167 b168
    b170 b172 b174 b175 b177 b179 b181 b182 b184 b186 b187 b189 b190 b192 b194 b195
"""
IDS = frozenset(ROWS.split())


def ids_in(folder: Path) -> dict[str, list[str]]:
    """Ids that test functions of a folder begin with, each with the tests; "" for tests that name none."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named = re.match(r"test_(b\d{3})_\w", node.name)
                found.setdefault(named[1] if named else "", []).append(node.name)
    return found


def test_every_known_bug_has_a_test() -> None:
    assert len(IDS) == 121
    assert IDS - ids_in(HERE).keys() == set()


def test_every_test_names_a_known_bug() -> None:
    found = ids_in(HERE)
    own = [name for name in found.pop("") if name not in globals()]
    assert (found.keys() - IDS, own) == (set(), [])


def test_no_two_tests_of_a_bug_have_one_name() -> None:
    names = [name for each in ids_in(HERE).values() for name in each]
    assert len(names) == len(set(names))


def test_a_folder_that_lacks_a_bug_or_means_another_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "class TestIt:\n    def test_b001_is_here(self): ...\ndef test_b999_is_unknown(): ...\ndef test_none(): ...\n"
    )
    assert ids_in(tmp_path) == {
        "b001": ["test_b001_is_here"],
        "b999": ["test_b999_is_unknown"],
        "": ["test_none"],
    }
