"""`stepcrit slim`: where the trace goes, what is told of it, and what --check lets pass."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepcrit.cli.main import run
from stepcrit.cli.slim import default_target, size_of
from stepcrit.errors import UsageError

FIXTURES = Path(__file__).parents[2] / "fixtures"
LONG = FIXTURES / "recorded" / "loader_halved_before.json.gz"
KEY = b"0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STEPCRIT_SLIM_KEY", raising=False)
    return tmp_path


def raw(**header: object) -> bytes:
    """A trace as torch writes it on a machine of somebody's."""
    row = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 4100,
        "tid": 4100,
        "ts": 1.0,
        "dur": 5.0,
        "args": {},
    }
    return json.dumps(
        {"schemaVersion": 1, "host_name": "gpu-node-17", **header, "traceEvents": [row]}
    ).encode()


def host_of(path: str) -> str:
    return str(json.loads(gzip.decompress(Path(path).read_bytes()))["host_name"])


@pytest.mark.parametrize(
    ("source", "rank", "target"),
    [
        ("a/rank0.json.gz", 3, "a/rank0.slim.json.gz"),
        ("trace.json", -1, "trace.slim.json.gz"),
        ("run.pt.trace.json.gz", -1, "run.slim.json.gz"),
        ("x.slim.json.gz", -1, "x.slim.json.gz"),
        ("gpu-node-17_4100.1757000000000000000.pt.trace.json.gz", 3, "rank3.slim.json.gz"),
        ("a/gpu-node-17_4100.pt.trace.json", -1, "a/trace.slim.json.gz"),
        ("trace.json.zst", -1, "trace.slim.json.gz"),
    ],
)
def test_the_default_name_is_the_traces_own_unless_it_tells_of_the_host(
    source: str, rank: int, target: str
) -> None:
    assert default_target(source, rank) == target


def test_the_report_tells_sizes_steps_and_what_went(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(LONG, "t.json.gz")
    assert run(["slim", "t.json.gz", "--steps", "last:2"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[:2] == [
        "slim   t.json.gz -> t.slim.json.gz",
        "steps  ProfilerStep#10 to ProfilerStep#11 (2 of 7, and the one before): as asked for",
    ]
    assert "rows of other steps" in err
    assert {path.name for path in here.iterdir()} == {"t.json.gz", "t.slim.json.gz"}


def test_a_trace_on_stdin_goes_to_stdout_and_the_report_beside_it() -> None:
    command = [sys.executable, "-m", "stepcrit", "slim", "-", "-o", "-"]
    done = subprocess.run(command, input=LONG.read_bytes(), capture_output=True, check=True)
    assert run(["slim", str(LONG), "-o", "same.json.gz"]) == 0
    assert done.stdout == Path("same.json.gz").read_bytes()
    assert done.stderr.startswith(b"slim   - -> -\nsteps  ")


@pytest.mark.parametrize("argv", [["-"], ["."], [str(LONG), str(LONG)]], ids=["stdin", "folder", "two"])
def test_what_has_no_name_or_too_many_needs_one(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slim", *argv]) == 2
    assert "-o FILE" in capsys.readouterr().err or len(argv) == 2


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_key_makes_tokens_equal_across_traces(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("slim.key").write_bytes(KEY + b"\n")
    if how == "environment":
        monkeypatch.setenv("STEPCRIT_SLIM_KEY", KEY.decode())
    option = ["--key-file", "slim.key"] if how == "option" else []
    for name, extra in (("a", 1), ("b", 2)):
        Path(f"{name}.json").write_bytes(raw(record_shapes=extra))
        assert run(["slim", f"{name}.json", *option]) == 0
    assert host_of("a.slim.json.gz") == host_of("b.slim.json.gz") != "gpu-node-17"


@pytest.mark.parametrize("key", [b"", b"short", b"   fifteen bytes   "])
def test_a_key_that_can_be_guessed_is_refused(key: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("slim.key").write_bytes(key)
    assert run(["slim", str(LONG), "-o", "x.json.gz", "--key-file", "slim.key"]) == 2
    assert "can be guessed" in capsys.readouterr().err
    assert not Path("x.json.gz").exists()


def test_a_damaged_trace_is_told_and_refused_under_strict(capsys: pytest.CaptureFixture[str]) -> None:
    text = gzip.decompress(LONG.read_bytes())
    Path("cut.json").write_bytes(text[: int(len(text) * 0.99)])
    assert run(["slim", "cut.json", "--strict"]) == 4
    assert not Path("cut.slim.json.gz").exists()
    assert run(["slim", "cut.json"]) == 0
    assert "damaged: the text stops before its end" in capsys.readouterr().err
    assert run(["analyze", "cut.slim.json.gz", "--strict"]) == 4


def test_doctor_tells_of_the_slimming(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slim", str(LONG), "-o", "x.json.gz", "--steps", "8"]) == 0
    capsys.readouterr()
    assert run(["doctor", "x.json.gz", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"]["slim"] == {
        "level": "names", "steps_before": 7, "first_step": "ProfilerStep#8", "last_step": "ProfilerStep#8",
    }  # fmt: skip
    assert [check["seen"] for check in told["data"]["checks"] if check["code"] == "E107"] == [
        "left out by stepcrit slim, if there were any"
    ]
    assert run(["doctor", str(LONG), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unknown"] == [
        {"path": "slim", "why": "not slimmed by stepcrit slim"}
    ]


# --- --check -------------------------------------------------------------------------------------


def test_check_passes_what_slim_writes_and_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("raw.json").write_bytes(raw(traceName="/home/me/x.json"))
    assert run(["slim", "raw.json"]) == 0
    before = {path.name for path in here.iterdir()}
    capsys.readouterr()
    assert run(["slim", "--check", "raw.json", "raw.slim.json.gz"]) == 1
    out, err = capsys.readouterr()
    assert out == "raw.json: it tells where it was recorded: 1 × host name, 1 × trace name\n"
    assert err.startswith("do  stepcrit slim ")
    assert run(["slim", "--check", "raw.slim.json.gz"]) == 0
    assert capsys.readouterr().out == "1 trace: small enough, without host, user or path\n"
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"args": {"kernel_file": "/srv/me/k.py"}}, "path in a name"),
        ({"args": {"deep": [{"a": "me@example.org"}]}}, "address in a name"),
        ({"name": "open /srv/me/x"}, "path in a name"),
        ({"name": "/home/me/train.py(3): step", "cat": "python_function"}, "path in a name"),
        ({"ph": "M", "name": "process_name", "args": {"name": "gpu-node-17"}}, "process name"),
        ({"ph": "M", "name": "thread_name", "args": {"name": "thread 7 (me)"}}, "thread name"),
    ],
)
def test_check_finds_what_tells_of_a_place_in_what_slim_leaves_out_too(
    place: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = json.loads(raw())
    del trace["host_name"]
    trace["traceEvents"][0] |= place
    Path("t.json").write_text(json.dumps(trace), encoding="utf-8")
    assert run(["slim", "--check", "t.json"]) == 1
    assert capsys.readouterr().out == f"t.json: it tells where it was recorded: 1 × {words}\n"


@pytest.mark.parametrize(("size", "code"), [("40kB", 0), ("1kB", 1), ("10 KiB", 1)])
def test_check_measures_the_file(size: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slim", "--check", str(LONG), "--max-size", size]) == code
    assert ("is more than" in capsys.readouterr().out) == bool(code)


def test_check_passes_over_what_is_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    Path("package.json").write_text('{"name": "x", "path": "/home/me"}', encoding="utf-8")
    assert run(["slim", "--check", "package.json", str(LONG)]) == 0
    assert "package.json: skipped, no trace" in capsys.readouterr().err
    assert run(["slim", "--check", "missing.json"]) == 3


@pytest.mark.parametrize(
    ("words", "size"),
    [("2MB", 2_000_000), ("700 kB", 700_000), ("1.5MiB", 1_572_864), ("9", 9), ("1G", 10**9)],
)
def test_a_size_is_read_with_its_unit(words: str, size: int) -> None:
    assert size_of(words) == size


@pytest.mark.parametrize("words", ["", "MB", "-1MB", "2 TB", "1e6", "2MBs"])
def test_a_size_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(UsageError):
        size_of(words)
