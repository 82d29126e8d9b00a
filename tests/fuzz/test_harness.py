"""The harness sees what it is there to see: planted faults of every kind are found, told, made small and kept."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import fuzz as script
import pytest
from fuzzing import answering, argv, asking, judge, keep, mutate, reading, seeds, sinks
from fuzzing.judge import Target, input_of, judged, strict_json
from fuzzing.targets import TARGETS

from stepcrit.errors import BrokenInputError, InternalError, StepcritError, UsageError
from tests.fuzz.fuzzed import fuzz


@pytest.fixture(autouse=True)
def _any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have needed more than one input may."""
    monkeypatch.setattr(judge, "PEAK_BYTES", 2**60)


def target(check: Callable[[bytes], None], *, is_lines: bool = False) -> Target:
    return Target("planted", lambda dice: dice.randbytes(200), check, is_lines=is_lines)


def thrown(seed: int) -> Random:
    return Random(seed)


def raises(error: BaseException) -> Callable[[bytes], None]:
    def check(_: bytes) -> None:
        raise error

    return check


def _loop(_: bytes) -> None:
    while True:
        pass


def _stubborn_loop(data: bytes) -> None:
    try:
        _loop(data)
    except Exception:  # noqa: BLE001 - as careless code would
        return


# --- what is a fault ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (raises(ZeroDivisionError("planted")), "ZeroDivisionError: planted"),
        (raises(RecursionError("planted")), "RecursionError: planted"),
        (raises(MemoryError()), "MemoryError"),
        (raises(AssertionError("planted")), "AssertionError: planted"),
        (raises(InternalError("planted", where="here")), "InternalError: planted (here)"),
        (raises(StepcritError("planted")), "an error without a kind: planted"),
        (lambda _: strict_json('{"x_ns": NaN}'), "NaN in JSON"),
        (lambda _: strict_json('{"x_ns": -Infinity}'), "-Infinity in JSON"),
        (lambda _: strict_json('{"a": 1, "a": 2}'), "a key twice"),
        (lambda _: strict_json("{"), "JSONDecodeError"),
    ],
)
def test_fault_is_seen(check: Callable[[bytes], None], says: str) -> None:
    assert says in judged(target(check), b"")


@pytest.mark.parametrize("error", [UsageError("no"), BrokenInputError("no")])
def test_refusal_is_no_fault(error: StepcritError) -> None:
    assert judged(target(raises(error)), b"") == ""


@pytest.mark.parametrize("check", [_loop, _stubborn_loop, lambda _: pow(3, 10**7)])
def test_what_takes_too_long_is_stopped_or_at_least_told(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[bytes], None]
) -> None:
    """In Python it is stopped; inside one call of C it ends by itself, and counts as well."""
    monkeypatch.setattr(judge, "CPU_SECONDS", 0.02)
    assert judged(target(check), b"").startswith("over 0.02 s")


def test_what_takes_too_much_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    room = judge.peak_bytes() + 50_000_000
    monkeypatch.setattr(judge, "PEAK_BYTES", room)
    assert judged(target(lambda _: None), b"") == ""
    assert "MB at the peak" in judged(target(lambda _: bool(b"x" * 200_000_000)), b"")


@pytest.mark.parametrize(
    ("name", "module", "door", "says"),
    [
        ("reader", reading, "read_trace", "planted"),
        ("packed", reading, "read_trace", "planted"),
        ("answers", answering, "load", "planted"),
        ("sinks", sinks, "render", "planted"),
        ("asked", asking, "matching", "planted"),
        ("argv", argv, "run", "planted"),
    ],
)
def test_every_target_goes_through_its_door(
    monkeypatch: pytest.MonkeyPatch, name: str, module: Any, door: str, says: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(module, door, broken)
    assert any(says in judged(TARGETS[name], input_of(TARGETS[name], 1, number)) for number in range(20))


def test_answer_that_does_not_add_up_is_a_fault() -> None:
    with pytest.raises(judge.FaultError, match="sums to 3, not to 4"):
        answering._check_conserved("data", {"elapsed_ns": 4, "by_class_ns": {"gemm": 1, "copy": 2}})


def test_targets_leave_the_process_as_it_was() -> None:
    before = dict(os.environ), Path.cwd(), sys.stdin, sys.stdout, signal.getsignal(signal.SIGPROF)
    for name in ("asked", "argv"):
        for number in range(5):
            assert judged(TARGETS[name], input_of(TARGETS[name], 1, number)) == ""
    assert (dict(os.environ), Path.cwd(), sys.stdin, sys.stdout, signal.getsignal(signal.SIGPROF)) == before


def test_exit_code_70_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argv, "run", lambda _: 70)
    assert "exit code 70" in judged(TARGETS["argv"], input_of(TARGETS["argv"], 1, 0))


def test_outcome_that_depends_on_the_piece_size_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "outcome", lambda _, chunk_bytes: str(chunk_bytes))
    sound = json.dumps(seeds.job(thrown(1))).encode()
    for data in (sound, sound[:-20]):  # damaged or not
        assert "read in pieces of" in judged(TARGETS["reader"], data)


# --- what is tried -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_input_depends_on_seed_target_and_number_alone(name: str) -> None:
    one = [input_of(TARGETS[name], 5, number) for number in range(30)]
    assert [input_of(TARGETS[name], 5, number) for number in reversed(range(30))] == one[::-1]
    assert len(set(one)) >= 25
    assert one[0] not in {input_of(TARGETS[name], 6, 0), *one[1:]}


@pytest.mark.parametrize("dialect", seeds.DIALECTS)
def test_seed_of_every_writer_is_read_whole(dialect: Callable[[seeds.Trace], seeds.Trace]) -> None:
    """A seed that is refused would leave most of the reader untried."""
    for number in range(10):
        dice = thrown(number)
        told = reading.outcome(seeds.text_of(dialect(seeds.job(dice)), dice), 1 << 20)
        assert re.fullmatch(r"\d+ events, [1-9]\d* rows .*, \{\}", told), told


@pytest.mark.parametrize("change", mutate.TEXT_CHANGES)
def test_every_change_changes_something(change: Callable[[bytes, Random], bytes]) -> None:
    text = json.dumps(seeds.job(thrown(1))).encode()
    assert sum(change(text, thrown(number)) != text for number in range(20)) >= 10


def test_every_command_and_option_is_tried() -> None:
    words = b"\n".join(input_of(TARGETS["argv"], 1, number) for number in range(3000)).decode()
    for path, options in argv.commands():
        assert all(f'"{word}"' in words for word in path)
        assert all(
            any(f'"{name}"' in words or f'"{name}=' in words for name in names) for names, _ in options
        )


# --- what becomes of a fault -------------------------------------------------------------------


def test_failure_is_told_with_the_command_that_repeats_it_and_kept_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def check(data: bytes) -> None:
        if b"\x07" in data and b"\x08" in data:
            raise KeyError("planted")

    monkeypatch.setattr(script, "TARGETS", {"planted": target(check)})
    monkeypatch.setattr(script, "keep", lambda one, data: keep.keep(one, data, tmp_path))
    monkeypatch.setattr(script, "bound_room", lambda: None)
    assert script.main(["--seed", "1", "--count", "40"]) == 1
    said = capsys.readouterr().out
    [kept] = tmp_path.iterdir()
    assert sorted(kept.read_bytes()) == [7, 8]
    again = re.findall(r"python scripts/fuzz.py (.*)", said)
    assert 1 < len(again) < 40
    for words in again:
        assert script.main([*words.split(), "--no-keep"]) == 1
    assert script.main(["--replay", str(kept)]) == 1
    assert "KeyError: 'planted'" in capsys.readouterr().out


def test_lines_are_left_out_whole() -> None:
    def check(data: bytes) -> None:
        if b"bad" in data:
            raise KeyError("planted")

    lines = b"".join(b"line %d %s\n" % (i, b"bad" if i == 33 else b"good") for i in range(60))
    one = target(check, is_lines=True)
    assert keep.smallest(one, lines, judged(one, lines)) == b"line 33 bad\n"


def test_other_failure_does_not_pass_for_the_one_that_is_made_small() -> None:
    def check(data: bytes) -> None:
        if b"\x07" not in data:
            raise ValueError("without it, another fault")
        raise KeyError("planted")

    data = b"\x01" * 100 + b"\x07" + b"\x02" * 100
    one = target(check)
    assert keep.smallest(one, data, judged(one, data)) == b"\x07"


def test_command_tells_its_seed_and_ends_when_its_time_is_up() -> None:
    code, said = fuzz("--target", "asked", "--seconds", "0.2", PYTHONHASHSEED="3")
    assert code == 0, said
    assert re.match(r"seed \d+\n(.*\n)*\d+ inputs, 0 failed, ", said)


def test_input_is_the_same_in_any_process() -> None:
    """Sets of strings have another order in each process."""
    digests = set()
    for hash_seed in ("0", "1"):
        code, said = fuzz("--seed", "3", "--count", "3", "--no-keep", "--digest", PYTHONHASHSEED=hash_seed)
        assert code == 0, said
        digests.add("\n".join(re.findall(r"^\w+ \d+ [0-9a-f]{12}$", said, re.MULTILINE)))
    [one] = digests
    assert len(one.splitlines()) == 3 * len(TARGETS)
