"""One input, judged: it ends in an answer or in one of our refusals, in time and in little memory."""

from __future__ import annotations

import faulthandler
import hashlib
import json
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from stepcrit.errors import InternalError, StepcritError

CPU_SECONDS = 2.0
"""No input may take longer. Time of the processor, which a busy machine does not stretch."""

WALL_SECONDS = 120.0
"""After so long the process ends itself with its traceback: it sleeps, or hangs where no signal reaches it."""

PEAK_BYTES = 256_000_000
ROOM_BYTES = 8 * 2**30
"""Address space of the process, so that an absurd allocation fails here and not on the whole machine."""


FRAMES = 8
"""So many calls of a traceback are told, the last ones."""


class FaultError(Exception):
    """An answer that breaks a promise."""


class _TooSlowError(BaseException):
    """Raised in whatever runs too long; no `except Exception` on the way holds it."""


@dataclass(frozen=True, slots=True)
class Target:
    """One door of the product, and inputs for it.

    Attributes:
        name: as `--target` takes it.
        make: an input, from chance alone.
        check: put it through; what is no refusal of ours must hold what an answer promises.
        is_lines: whether the input is made of lines, each of which can be left out.
        bounded: how many inputs the tests try.
        chunk: how many of them at a time: a few seconds' worth.
    """

    name: str
    make: Callable[[Random], bytes]
    check: Callable[[bytes], None]
    is_lines: bool = False
    bounded: int = 600
    chunk: int = 300


def input_of(target: Target, seed: int, number: int) -> bytes:
    """Input `number` of a target: a function of these three and nothing else."""
    return target.make(Random(f"{seed} {target.name} {number}"))


def judged(target: Target, data: bytes) -> str:
    """What is wrong with what became of an input: "" when nothing is."""
    _forget_peak()
    try:
        with _time_limit():
            target.check(data)
    except _TooSlowError:
        return f"over {CPU_SECONDS} s\n{_where(sys.exc_info()[2])}"
    except InternalError as error:
        return f"InternalError: {error} ({error.where})\n{traceback.format_exc(limit=-FRAMES)}"
    except StepcritError as error:
        return "" if type(error) is not StepcritError else f"an error without a kind: {error}"
    except FaultError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - that is what is looked for
        return traceback.format_exc(limit=-FRAMES)
    peak = peak_bytes()
    return "" if peak <= PEAK_BYTES else f"{peak / 1e6:.0f} MB at the peak"


def fault(what: str) -> NoReturn:
    """Say which promise is broken."""
    raise FaultError(what)


def sampled(data: bytes, of: int) -> bool:
    """Whether an input is one of `of` that get a closer look: always the same ones."""
    return hashlib.sha256(data).digest()[0] % of == 0


def strict_json(text: bytes | str) -> Any:
    """The value of JSON that RFC 8259 allows: no NaN, no key twice."""
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)


def _no_number(word: str) -> NoReturn:
    raise FaultError(f"{word} in JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise FaultError("a key twice in one JSON object")
    return made


# --- limits ------------------------------------------------------------------------------------


@contextmanager
def _time_limit() -> Iterator[None]:
    """Stop what takes too long."""
    faulthandler.dump_traceback_later(WALL_SECONDS, exit=True, file=sys.__stderr__ or 2)
    before = signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    began = time.process_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        faulthandler.cancel_dump_traceback_later()
    if time.process_time() - began > CPU_SECONDS:  # inside one call of C, where the signal had to wait
        raise _TooSlowError


def _too_slow(*_: object) -> NoReturn:
    raise _TooSlowError


def _where(trace: Any) -> str:
    return "".join(traceback.format_tb(trace)[-FRAMES:])


def bound_room() -> None:
    """Bound the address space of this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM_BYTES, hard))


def _forget_peak() -> None:
    """Let the peak count from here, where the system can (Linux): else one large input would blame all after it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """The most memory held since `_forget_peak`. `ru_maxrss` would count what the parent held at the fork."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
