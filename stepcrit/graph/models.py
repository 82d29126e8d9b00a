"""The user's words for resource models: which machine a what-if is replayed on (methods C.4)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from msgspec import Struct

from stepcrit.errors import UsageError, quoted
from stepcrit.graph.change import parse_duration, parse_number
from stepcrit.units import ns_text

Name = Literal["order", "free", "lanes", "queue", "comm", "contend"]

DEEPEST = 10**9
"""No launch queue holds more operations."""


class Model(Struct, frozen=True):
    """One resource model.

    Attributes:
        name: which.
        depth: for "queue", how many operations may be outstanding.
        slowdown: for "contend"; None to measure it on the trace.
        faster: for "comm", k: how many times as fast the links are.
        alpha_ns: for "comm", the part of a transfer that no bandwidth shortens; None when unknown.
        fitted: for "comm", whether that part is to be fitted to the trace.
        beta: for "comm", ns per byte, when the user gives it.
    """

    name: Name
    depth: int = 0
    slowdown: Fraction | None = None
    faster: Fraction = Fraction(1)
    alpha_ns: int | None = None
    fitted: bool = False
    beta: Fraction | None = None

    @property
    def claim(self) -> Literal["modelled", "bound"]:
        """What may be claimed of a number that this model gives."""
        return "bound" if self.name in ("free", "lanes") else "modelled"

    @property
    def words(self) -> str:
        """The assumption that an answer prints, in one sentence."""
        return _WORDS[self.name](self)


def _comm_words(model: Model) -> str:
    alpha = "of unknown length" if model.alpha_ns is None else f"of {ns_text(model.alpha_ns)}"
    alpha = "fitted to this trace" if model.fitted else alpha
    beta = "" if model.beta is None else f", at {_decimal(model.beta)} ns per byte before"
    return (
        f"links {_decimal(model.faster)} times as fast: what a transfer takes beyond its start-up ({alpha}) "
        f"is divided by that{beta}, and waiting inside a collective stays"
    )


def _contend_words(model: Model) -> str:
    rate = "slower, by what this trace's kernels show," if model.slowdown is None else ""
    rate = rate or f"{_decimal(model.slowdown or Fraction(1))} times slower"
    return f"compute runs {rate} while communication is active on its device"


def _decimal(value: Fraction) -> str:
    return f"{float(value):.6g}"


_WORDS: dict[Name, Callable[[Model], str]] = {
    "order": lambda _: "program and queue order stay as recorded, gaps too",
    "free": lambda _: "a floor if any two activities of one queue may run at once, at full speed",
    "lanes": lambda _: "a floor if every queue and thread does one thing at a time, in whatever order",
    "queue": lambda model: (
        f"a launch call returns only once fewer than {model.depth} earlier operations of its queue are "
        "unfinished"
    ),
    "comm": _comm_words,
    "contend": _contend_words,
}

_USAGE = (
    "order, free, lanes, queue:1024, comm:k=2, comm:alpha=10us,k=2, comm:alpha=fit,k=2, contend:1.2, contend"
)


def parse_model(text: str) -> Model:
    """A model from its words.

    Raises:
        UsageError: there is no such model, or its numbers make no sense.

    >>> parse_model("queue:1024").depth, parse_model("contend:1.2").slowdown
    (1024, Fraction(6, 5))
    >>> parse_model("comm:alpha=10us,k=2").alpha_ns
    10000
    """
    name, colon, rest = text.strip().partition(":")
    if name == "queue":
        return Model("queue", depth=_depth(rest))
    if name == "comm" and rest:
        return _comm(rest)
    if name == "contend":
        return Model("contend", slowdown=_slowdown(rest) if colon else None)
    plain: dict[str, Model] = {"order": Model("order"), "free": Model("free"), "lanes": Model("lanes")}
    if name not in plain or colon:
        raise UsageError(f"{quoted(text)} is no model", do=f"one of {_USAGE}")
    return plain[name]


def _depth(words: str) -> int:
    """How many operations a queue takes."""
    digits = words.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and 1 <= int(digits) <= DEEPEST):
        raise UsageError(
            f"{quoted(words)} is no depth of a queue", do="a whole number of operations, such as queue:1024"
        )
    return int(digits)


def _slowdown(words: str) -> Fraction:
    """How many times slower."""
    value = parse_number(words)
    if value is None or not 1 <= value <= 1000:
        raise UsageError(
            f"{quoted(words)} is no slowdown", do="1 to 1000, such as contend:1.2; or contend to measure it"
        )
    return value.limit_denominator(10**6)


def _comm(words: str) -> Model:
    """The parts of `comm`, in any order, each at most once."""
    parts = dict(_part(word) for word in words.split(","))
    if len(parts) != words.count(",") + 1:
        raise UsageError(f"comm:{quoted(words)} says a thing twice", do=f"one of {_USAGE}")
    alpha = parts.get("alpha", "")
    fitted = alpha == "fit"
    faster = parse_number(parts.get("k", "1").removesuffix("x"))
    if faster is None or not Fraction(1, 10**6) <= faster <= 10**6:
        raise UsageError(
            f"{quoted(parts['k'])} is no factor for links", do="k=2 for twice as fast; 1e-6 to 1e6"
        )
    return Model(
        "comm",
        faster=faster,
        alpha_ns=parse_duration(alpha) if alpha and not fitted else None,
        fitted=fitted,
        beta=_per_byte(parts["beta"]) if "beta" in parts else None,
    )


def _part(word: str) -> tuple[str, str]:
    key, equals, value = (one.strip() for one in word.partition("="))
    if key not in ("k", "alpha", "beta") or not equals or not value:
        raise UsageError(
            f"{quoted(word)} says nothing about links",
            do="comm takes k=2, alpha=10us or alpha=fit, beta=10us/MB",
        )
    return key, value


_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _per_byte(words: str) -> Fraction:
    """Time per size, such as 10us/MB, in ns per byte."""
    time, slash, size = words.partition("/")
    if not slash or size.strip() not in _SIZES:
        raise UsageError(f"{quoted(words)} is no time per size", do="such as beta=10us/MB")
    return Fraction(parse_duration(time), _SIZES[size.strip()])
