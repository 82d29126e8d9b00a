"""F17: names as long as books are cut where people read, and cost memory but once."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from stepcrit.cli.main import run
from stepcrit.ingest.limits import NAME_CHARS
from tests.faults.conftest import TRACE
from tests.faults.nursery import Nursery

MEGABYTE = 1_000_000
FIVE_TIMES = "cudaStreamSynchronize"
SCREENFUL = 60_000
"""More than any answer on a terminal has: a few hundred lines."""


LOADED = 1 << 30
"""The address space of a process that has everything loaded, generously."""


def renamed(path: Path, longer: dict[str, str]) -> Path:
    """The trace, with some names made longer."""
    document = json.loads(gzip.decompress(TRACE.read_bytes()))
    for row in document["traceEvents"]:
        row["name"] = longer.get(row.get("name", ""), row.get("name", ""))
    path.write_bytes(gzip.compress(json.dumps(document).encode(), 1))
    return path


@pytest.fixture(scope="module")
def long_named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator and a call of a megabyte each; the call's in signs of several bytes."""
    longer = {"aten::_foreach_add_": "aten::" + "m" * MEGABYTE, FIVE_TIMES: "日" * MEGABYTE}
    return renamed(tmp_path_factory.mktemp("names") / "long.json.gz", longer)


@pytest.mark.parametrize("fmt", ["text", "md"])
@pytest.mark.parametrize("verb", ["analyze", "critical", "doctor", "whatif --rank"])
def test_a_name_of_a_megabyte_is_cut_where_people_read(
    long_named: Path, verb: str, fmt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = verb.split()
    assert run([name, str(long_named), *options, "--format", fmt]) == 0
    out = capsys.readouterr().out
    assert len(out) < SCREENFUL
    if name == "analyze":
        assert "aten::mmmmmmmm" in out
        assert "…" in out


def test_a_machine_gets_as_much_of_a_name_as_is_kept(
    long_named: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(long_named), "--json"]) == 0
    named = {row["name"] for row in json.loads(capsys.readouterr().out)["data"]["operators"]}
    (kept,) = [name for name in named if name.startswith("aten::mmmm")]
    assert len(kept) == NAME_CHARS
    assert re.fullmatch(r"aten::m{65000,}… [0-9a-f]{16}", kept)


def test_a_refusal_about_a_long_name_is_short(long_named: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = "x" * 100_000  # about as long as the system lets an argument be
    for argv in (
        ["whatif", str(long_named), "--shrink", "aten::mmm=0.5"],
        ["whatif", str(TRACE), "--shrink", f"{typed}=0.5"],
        ["critical", str(TRACE), "--around", typed],
        ["explain", typed],
        ["analyze", f"{typed}.json"],
        ["analyze", str(TRACE), "--step", typed],
        ["analyze", str(TRACE), f"--{typed}"],
        [typed],
    ):
        assert run(argv) in (2, 3)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err) < SCREENFUL


def test_thousands_of_long_names_are_held_once(nursery: Nursery, tmp_path: Path) -> None:
    count, length = 400, 100_000
    chance = random.Random(17)
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"{chance.random()}".ljust(length, "n"),
            "pid": 1,
            "tid": 1,
            "ts": 10 * k,
            "dur": 9,
        }
        for k in range(count)
    ]
    path = tmp_path / "many.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    del events
    text_bytes = count * length
    room = text_bytes * 4 + LOADED
    done = nursery.run("analyze", str(path), limits={"RLIMIT_AS": room})
    assert (done.code, done.err) == (0, b"")
    assert len(done.out) < SCREENFUL


def test_too_little_memory_is_a_limit_and_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def greedy(*_: object, **__: object) -> None:
        bytearray(1 << 62)

    monkeypatch.setattr("stepcrit.session.read_trace", greedy)
    assert run(["analyze", "t.json"]) == 3
    assert capsys.readouterr().err.startswith("error SC307: There is not enough memory")
