"""What users type and configure: floors, selectors, durations, changes, models, numbers, and stepcrit.toml."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from fuzzing import odd
from fuzzing.judge import Target, fault
from fuzzing.mutate import broken
from stepcrit.analyses.calculators import Line
from stepcrit.cli import calc
from stepcrit.cli.config import CONFIG
from stepcrit.cli.options import parse_floors, session_options
from stepcrit.cli.which import trace_meant
from stepcrit.errors import StepcritError, UsageError
from stepcrit.graph.change import LONGEST_NS, parse_change, parse_duration, parse_number
from stepcrit.graph.models import parse_model
from stepcrit.graph.selector import matching, parse_selector

WORDS = (
    "aten::mm=0.5", "*=2x", "class:gemm=100us", "a==b=1", "=0.5", "aten::mm=", "re:.*=1e-9", "stream:7=1e400", "1us", "5 us", "1.5ms", "1e3ns",
    "1000000s", "1000001s", "-1us", "1e99s", "0x10us", "\u0661us", "½us", "1_0us", "μs", "5μs", "nan us", "infs", "1/3ms", "1/0ms", "1e", "e5", "ms",
    "launch=5us,stream=750ns", "launch=", "auto", "none", "launch=5us,launch=6us", "event=1ns,", "handover=1e9s", "foo=1us",
    "order", "free", "lanes", "queue:1024", "queue:0", "queue:" + "9" * 30, "comm:k=2", "comm:alpha=10us,k=2", "comm:beta=10us/MB", "comm:k=2,k=3",
    "comm:", "contend", "contend:1.2", "contend:1e999", "contend:0.5", "comm:alpha=fit,k=1e-6", "queue:1024:1", "ORDER", " free ",
    "re:(a+)+$", "re:(", "re:" + "(" * 500 + ")" * 500, "re:[", "re:(?P<n>a)(?P<n>b)", "re:\\", "re:a{99999}", "re:(?i)x", "re:" + "a?" * 30 + "a" * 30,
    "[", "[!", "*" * 60, "?" * 200, "[a-", "[z-a]", "**", "a\\*", "class:", "step:-1", "line:", "module:[", "\ud800", "stream:x", "stream:99999999999999999999",
    "40ms", "data=40ms:inf", "10%", "0.4", "8,100ms", "16,60ms,1.5", "30s+1.0s", "M,N,K", "1,2,3", "3350GB/s", "1000GFLOP/s", "1e18", "1e-18", "1/9999999", "inf",
    "2x", "+", "++", ",,,", ":", "::", "=", "==", "%", "1%%",
)  # fmt: skip

TOML = (
    b"", b'[check]\ntraces = ["a.json"]\n', b'[check]\ntraces = "*.json"\n', b'[check]\ntraces = ["**/*.json", "b.json"]\n', b"[check]\ntraces = []\n",
    b"check = 1\n", b"[check]\ntraces = 3\n", b'[check]\ntraces = [""]\n', b'[check]\ntraces = ["\\u0000"]\n', b'[check]\ntraces = ["[", "[!a]*"]\n',
    b'[[check]]\ntraces = ["a.json"]\n', b"a = " + b"[" * 5000, b"a = " + b"{b=" * 2000, b"a = 1e999\nb = nan\nc = 9" + b"9" * 5000 + b"\n",
    b"a" + b".a" * 3000 + b" = 1\n", b'[check]\ntraces = ["' + b"a" * 5000 + b'"]\n', b'[check]\ntraces = ["' + b"**/" * 40 + b'x"]\n', b"d = 2024-13-01\n",
    b'[check]\ntraces = ["\\uD800"]\n', b"[check]\n[check]\n", b'[check]\ntraces = ["~/x", "../*.json", "folder"]\n', b"\xef\xbb\xbf[check]\n",
    b'[check]\ntraces = "good.json"\n[budget."*"]\nhost_syncs = { max = 1 }\nstep_time = { max = "420 ms", grow = "5 %" }\n[watch]\n"*" = "x/**"\n',
    b'[check]\ntraces = "*.json"\nsteps = "1-2"\nmax_trace_size = "2 MB"\n[budget."*"]\n"trust.starts" = { min = 1 }\ncritical."class".max = 1\n',
)  # fmt: skip


def asked(dice: Random) -> bytes:
    """Questions, a line each: the kind and its text."""
    lines: list[tuple[str, str]] = []
    for _ in range(6):
        kind = dice.choice(list(KINDS))
        text = broken(dice.choice(TOML), dice).decode("latin-1") if kind == "config" else _typed(dice)
        lines.append((kind, text))
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _typed(dice: Random) -> str:
    """A word that is nearly one of ours."""
    word = dice.choice((*WORDS, *WORDS, *odd.NAMES, *(str(number) for number in odd.NUMBERS)))
    for _ in range(dice.choice((0, 0, 1, 1, 3))):
        at = dice.randint(0, len(word))
        extra = dice.choice((dice.choice(WORDS)[:10], chr(dice.randint(1, 0x2FF)), "", "0", "=", ":", ","))
        word = word[:at] + extra + word[at + dice.choice((0, 0, 1, 3)) :]
    return word


def check_asked(data: bytes) -> None:
    """Each text is understood, or refused as wrong use with a reason."""
    for line in data.splitlines():
        try:
            kind, text = json.loads(line)
            ask = KINDS[kind]
        except (ValueError, KeyError, TypeError):
            continue
        try:
            ask(text)
        except UsageError as error:
            if not error.what or len(error.what) > 3 * len(text) + 1000:
                fault(f"a refusal that says nothing, or too much: {error.what[:200]!r}")
        except StepcritError as error:
            fault(f"what was typed is refused as {error.code}: {error}")


def _duration(text: str) -> None:
    found = parse_duration(text)
    if not (isinstance(found, int) and 0 <= found <= LONGEST_NS):
        fault(f"{text!r} is {found} ns")


def _change(text: str) -> None:
    for operation in ("shrink", "speedup", "set", "add", "remove"):
        with contextlib.suppress(UsageError):
            change = parse_change(operation, text)
            if change.factor < 0 or change.amount_ns < 0:
                fault(f"--{operation} {text!r} is {change}")


def _selector(text: str) -> None:
    matching((*odd.NAMES, "a" * 40), parse_selector(text))


def _config(text: str) -> None:
    with somewhere(XDG_CACHE_HOME="cache"):
        for name in ("a.json", "b.json", "[", "ä.json"):
            Path(name).touch()
        Path("folder").mkdir()
        Path(CONFIG).write_bytes(text.encode("latin-1", "replace"))
        found, _ = trace_meant(None)
        if not Path(found).is_file():
            fault(f"{found!r} is no trace that is there")


@contextlib.contextmanager
def somewhere(**variables: str) -> Iterator[None]:
    """In an empty folder, with these variables of the environment."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.update(variables)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _line(text: str) -> None:
    if not isinstance(calc.parse_line(text, "--a"), Line):
        fault(f"{text!r} is no line")


KINDS: dict[str, Callable[[str], object]] = {
    "config": _config,
    "floors": parse_floors,
    "duration": _duration,
    "number": parse_number,
    "change": _change,
    "model": lambda text: parse_model(text).words,
    "selector": _selector,
    "pattern": lambda text: session_options(step_regex=text, optimizer_regex=text, floors="none"),
    "time": calc.parse_time,
    "speedup": calc.parse_speedup,
    "part": lambda text: calc.parse_part(text, None, "2"),
    "line": _line,
    "sizes": calc.parse_sizes,
    "run": calc.parse_run,
    "batch": calc.parse_batch,
    "rate": lambda text: calc.parse_rate(text, calc.BYTES, "bandwidth"),
}
"""What may be typed -> what reads it."""

CONFIG_AND_WORDS = Target("asked", asked, check_asked, is_lines=True, bounded=600, chunk=600)
