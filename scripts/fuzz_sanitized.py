"""The compiled kernels under AddressSanitizer and UBSan: hostile text until the time is up, or a sanitizer stops it.

    python scripts/fuzz_sanitized.py --seconds 300
    python scripts/fuzz_sanitized.py --seed 7 --first 123 --count 1     exactly one input again

Builds the kernels anew in a temporary folder. Each input goes to the scanner by itself, cut anywhere, and through both
readers, which must agree; ranges, of which some are none, to the sweep that nests them; and graphs, of which some are
none, to the passes over them. Says so and does nothing where there is no compiler or no sanitizer runtime.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from array import array
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300.0
STUCK_SECONDS = 60.0
"""An input that takes longer hangs."""

FLAGS = (
    "-O1", "-g", "-std=c11", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
)  # fmt: skip


def main() -> int:
    """Build, and run a child with the sanitizers' runtime in it; its exit code."""
    options = _parser().parse_args()
    if options.built:
        return _fuzz(options)
    runtime = _runtime()
    if not runtime:
        print("skipped: there is no C compiler, or no AddressSanitizer runtime (libasan) beside it")
        return 0
    from build_kernels import CannotCompileError, compile_kernels  # noqa: PLC0415 - the child needs no hatchling

    with tempfile.TemporaryDirectory(prefix="stepcrit-sanitized-") as folder:
        try:
            compile_kernels(ROOT, FLAGS, Path(folder))
        except CannotCompileError as error:
            print(f"skipped: the kernels cannot be built with sanitizers: {error}")
            return 0
        env = {
            **os.environ,
            "LD_PRELOAD": runtime,
            "PYTHONMALLOC": "malloc",  # so that each object's bounds are watched
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
            "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
        }
        words = [sys.executable, str(Path(__file__)), *sys.argv[1:], "--built", folder]
        done = subprocess.run(words, env=env, check=False)
        if done.returncode:
            last = Path(folder, "last").read_text(encoding="ascii")
            print(f"again: python scripts/fuzz_sanitized.py {last}")
    return done.returncode


def _runtime() -> str:
    """The runtime library of AddressSanitizer, or ""."""
    compiler = os.environ.get("CC", "cc").split()[0]
    if not shutil.which(compiler):
        return ""
    asked = [compiler, "-print-file-name=libasan.so"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return told if os.path.isabs(told) and Path(told).exists() else ""  # noqa: PTH117 - a bare name is "not found"


def _fuzz(options: argparse.Namespace) -> int:
    """In the child: put inputs through, each told before so that the last one told is the one that failed."""
    scan, nesting, schedule = _sanitized(Path(options.built))
    from fuzzing import twins  # noqa: PLC0415 - after the module that it is to load

    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    began, done = time.monotonic(), 0
    for number in count(options.first):
        if done == options.count or (options.count is None and time.monotonic() - began > options.seconds):
            break
        Path(options.built, "last").write_text(f"--seed {seed} --first {number} --count 1", encoding="ascii")
        faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
        dice = Random(f"{seed} sanitized {number}")
        _scan_cut(scan.Scanner(), _hostile(dice) if dice.random() < 0.3 else twins.written(dice), dice)
        _nest(nesting, dice)
        _pass(schedule, dice)
        if not number % 4:
            twins.check_alike(twins.written(dice))
        done += 1
    print(f"{done} inputs, none stopped by a sanitizer, {time.monotonic() - began:.0f} s")
    return 0


def _sanitized(folder: Path) -> tuple[Any, Any, Any]:
    """Have the kernels that were built with sanitizers loaded instead of the installed ones."""
    from stepcrit import kernels  # noqa: PLC0415 - in the child only

    kernels.__path__.insert(0, str(folder / "stepcrit" / "kernels"))
    from stepcrit.kernels import _nesting, _scan, _schedule  # noqa: PLC0415 - the same

    if not all(str(one.__file__).startswith(str(folder)) for one in (_nesting, _scan, _schedule)):
        raise SystemExit("other kernels than the sanitized ones are loaded")
    return _scan, _nesting, _schedule


def _told(table: int, word: bytes) -> int:
    """What a word is: anything of 32 bits."""
    return table * 1000 + len(word)


def _scan_cut(scanner: Any, text: bytes, dice: Random) -> None:
    """Scan a text whole and cut; what lies behind the end given must not matter."""
    start = text.find(b'"traceEvents"')
    start = text.find(b"[", max(start, 0)) + 1
    for _ in range(6):
        end = dice.randint(start, len(text))
        alone, within = text[start:end], text[: end + dice.randint(0, 40)]
        results = [
            scanner.scan(alone, 0, len(alone), _told),
            scanner.scan(within, start, end, _told),
            scanner.scan(alone + b'"}]', 0, len(alone), _told),
        ]
        if len({found is None for found in results}) > 1:
            raise AssertionError("what lies behind the end changes the answer")
        if dice.random() < 0.5:
            scanner.keep(dice.randint(0, 1 << 40))
        if dice.random() < 0.1:
            _ = [bytes(column) for column in scanner.take().values()]
    end = text.rfind(b"]", start)
    scanner.scan(text[start : max(end, start)], 0, max(end, start) - start, _told)


def _nest(nesting: Any, dice: Random) -> None:
    """Nest any numbers, now and then with a row that there is not, and inherit from any."""
    size = dice.choice((0, 1, 2, 40))
    rows = array("q", sorted(dice.randrange(size) for _ in range(size)))
    if rows and dice.random() < 0.2:
        rows[dice.randrange(size)] = dice.choice(_extreme(size))
    most = 2 * size + 1
    room = array("q", bytes(8 * most)), array("q", bytes(8 * most)), array("i", bytes(4 * most))
    around = array("i", bytes(4 * size)), array("i", bytes(4 * size))
    extent = dice.choice(_extreme(size)), dice.choice(_extreme(size))
    with contextlib.suppress(IndexError):
        nesting.sweep(_column(size, dice), _column(size, dice), rows, *extent, *around, *room)
    with contextlib.suppress(IndexError):
        nesting.inherit(_short_column(size, dice), _short_column(size, dice))


def _pass(schedule: Any, dice: Random) -> None:
    """Pass over any graph, now and then with a node that there is not, paint anywhere, and overlap anything."""
    nodes = dice.choice((0, 1, 2, 40))
    targets = sorted(dice.randrange(1, nodes) for _ in range(2 * nodes)) if nodes > 1 else []
    src = array("q", (dice.randrange(v) for v in targets))
    ptr = array("q", (sum(v < upto for v in targets) for upto in range(nodes + 1)))
    for column in (src, ptr):
        if column and dice.random() < 0.1:
            column[dice.randrange(len(column))] = dice.choice(_extreme(nodes))
    last, far, found = dice.choice((-1, 0, nodes - 1, nodes)), 2**62, dice.choice((0, 1, 99))
    room = [_column(found, dice) for _ in range(3)]
    for call in (
        lambda: schedule.forward(src, ptr, _column(nodes, dice), _column(len(src), dice), _column(nodes, dice)),
        lambda: schedule.latest(src, ptr, _column(nodes, dice), _column(len(src), dice), _column(nodes, dice), last, far),
        lambda: schedule.paint(*(_column(nodes, dice) for _ in range(4))),
        lambda: schedule.overlaps(*(_column(nodes, dice) for _ in range(4)), *room),
    ):  # fmt: skip
        with contextlib.suppress(IndexError, OverflowError, ValueError):
            call()


def _extreme(size: int) -> tuple[int, ...]:
    return (-(2**63), -1, 0, 1, size, 2**62, 2**63 - 1)


def _column(size: int, dice: Random) -> array[int]:
    """Small numbers, and some that are not."""
    drawn = (dice.choice(_extreme(size)) if dice.random() < 0.1 else dice.randint(-1, 9) for _ in range(size))
    return array("q", drawn)


def _short_column(size: int, dice: Random) -> array[int]:
    """The same in 32 bits."""
    return array("i", (max(-(2**31), min(value, 2**31 - 1)) for value in _column(size, dice)))


def _hostile(dice: Random) -> bytes:
    """Much of one thing, in a place of an event."""
    size = dice.choice((1, 7, 8, 9, 63, 64, 65, 4096, 65_535, 65_536, 65_537, 1_000_000))
    unit = dice.choice(
        (b"[", b"{", b'{"a":', b"[[", b"a", b"\\\\", b'\\"', b"\\u00e9", b"\xc3\xa9", b"9", b"0", b"-", b" ", b"\n", b'"', b",", b"\\", b"\xff", b"1e")
    )  # fmt: skip
    much = (unit * (size // len(unit) + 1))[:size]
    key = dice.choice(
        (
            "ph",
            "ts",
            "dur",
            "name",
            "cat",
            "pid",
            "tid",
            "id",
            "args",
            "attr",
            "x",
            "Call stack",
            "Input Dims",
            "stream",
        )
    )
    value = dice.choice((much, b'"' + much + b'"', b"[" + much + b"]", b'{"a":' + much + b"}"))
    event: dict[str, Any] = {
        "ph": dice.choice("XBEsfiMC"),
        "name": "n",
        "pid": 1,
        "tid": 2,
        "ts": 1,
        "args": {"Bytes": 1},
    }
    text = json.dumps([event, {**event, key: 0, "args": {key: 0}}]).encode()
    spot = dice.choice((f'"{key}": 0', '"n"', f'"{key}"'))
    return text.replace(spot.encode(), f'"{key}": '.encode() + value, dice.choice((1, 2)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="default: a fresh one, printed")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first input")
    parser.add_argument("--count", type=int, metavar="N", help="so many inputs, however long it takes")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long ({SECONDS:.0f})")
    parser.add_argument("--built", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
