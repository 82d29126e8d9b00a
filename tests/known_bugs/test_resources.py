"""What reading costs has a bound, nothing runs in a pool, and no file is silently empty."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stepcrit
from tests.answers.drawn import op
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, text

PACKAGE = Path(stepcrit.__file__).parent
POOLS = {"multiprocessing", "concurrent", "threading", "_thread", "asyncio", "joblib"}


def imported(path: Path) -> set[str]:
    """Top names of all modules that a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def pools_in(folder: Path) -> dict[str, set[str]]:
    """Files that import something that makes workers."""
    found = {path.name: imported(path) & POOLS for path in sorted(folder.rglob("*.py"))}
    return {name: modules for name, modules in found.items() if modules}


def test_b172_nothing_can_hang_in_a_pool_for_there_is_none(tmp_path: Path) -> None:
    # One thread unpacks while the rest reads, and ends with its file: see tests/ingest/test_ahead.py.
    assert pools_in(PACKAGE) == {"ahead.py": {"threading"}}
    (tmp_path / "bad.py").write_text("def f():\n    from concurrent.futures import ProcessPoolExecutor\n")
    assert pools_in(tmp_path) == {"bad.py": {"concurrent"}}


def test_b174_no_workers_are_counted_by_processors(tmp_path: Path) -> None:
    """Without a pool one file is in memory at a time, and no processor is asked for."""
    counted = [
        path.name for path in sorted(PACKAGE.rglob("*.py")) if "cpu_count" in path.read_text(encoding="utf-8")
    ]
    assert counted == []
    (tmp_path / "bad.py").write_text("import multiprocessing\n")
    assert pools_in(tmp_path) == {"bad.py": {"multiprocessing"}}


@pytest.mark.parametrize("limit", ["text=1KiB", "events=3", "value=1KiB", "names=20"])
def test_b175_what_is_larger_than_a_limit_is_refused_by_its_name_and_never_empty(
    ask: Ask, limit: str
) -> None:
    """Small here: a limit of a kilobyte meets a file as one of gigabytes meets the usual limits."""
    events = [*loop(10), {**op("wide", 2000, 2010), "args": {"x": "y" * 3000}}]
    answer = ask(events, "analyze", "--limit", limit)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error SC307")
    assert f"--limit {limit.partition('=')[0]}=" in answer.err


def test_b175_a_file_of_many_chunks_is_read_whole() -> None:
    content = text([op(f"op{n % 7}", 10 * n, 10 * n + 5) for n in range(40_000)])
    assert len(content) > 3 << 20  # more than is decoded at a time
    found = raw(content)
    assert len(found.events) == 40_000
    assert int(found.events.end_ns[-1]) == 399_995_000


def test_b177_memory_is_refused_before_it_is_used_up(ask: Ask) -> None:
    """A limit on text, events and names stands for an estimate: each error says how to allow more."""
    answer = ask(loop(50), "analyze", "--limit", "text=4KiB")
    assert answer.code == 3
    assert "--limit text=8KiB" in answer.err
    assert ask(loop(50), "analyze", "--limit", "text=1MiB").code == 0
