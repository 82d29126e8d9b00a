"""A user's own rules for classes of work (`--classes`): before the table of names, after metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct

from stepcrit.errors import UsageError, quoted
from stepcrit.link.patterns import deadline, found_by, meant_by, near_names
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import ClassRule, WorkClass

CALL_CLASSES = (WorkClass.LAUNCH, WorkClass.SYNC, WorkClass.RUNTIME)
OPERATOR_CLASSES = (WorkClass.INPUT, WorkClass.OPTIMIZER_HOST, WorkClass.COMM_HOST, WorkClass.HOST)
SIDES = {
    "kernels": tuple(work for work in WorkClass if work <= WorkClass.COMM),
    "host": OPERATOR_CLASSES + CALL_CLASSES,
}
"""Tables of a rules file and the classes that names can have there. Copies are copies by their category."""

MOST = 1000
"""So many patterns are matched in a moment, and nobody writes more."""


class ClassRules(Struct, frozen=True, dict=True):
    """Rules in the order in which they are tried: the first that means a name decides it."""

    rules: tuple[ClassRule, ...] = ()

    @classmethod
    def parse(cls, table: Mapping[str, Any]) -> ClassRules:
        """The rules of a parsed TOML file: `[kernels]` and `[host]`, each of label = [pattern, ...].

        Raises:
            UsageError: an unknown table or class, or a pattern that is none.
        """
        found = []
        for side, classes in table.items():
            if side not in SIDES:
                raise UsageError(
                    f"no table {quoted(side)} in a file of classes", do=_instead(side, tuple(SIDES))
                )
            if not isinstance(classes, dict):
                raise UsageError(
                    f"{side} is no table of classes", do=f'write [{side}] and gemm = ["pattern"]'
                )
            for label, patterns in classes.items():
                work = _class_of(side, label)
                found += [ClassRule(side, work, one) for one in _patterns(side, label, patterns)]
        if len(found) > MOST:
            raise UsageError(f"{len(found)} patterns in a file of classes", do=f"write at most {MOST}")
        return cls(tuple(found))

    @cached_property
    def digest(self) -> str:
        """What the rules say, as a number that two files have in common only if they say the same."""
        lines = (f"{one.side}\0{one.work.label}\0{one.pattern}\0" for one in self.rules)
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def of_names(self, names: tuple[str, ...], asked: Mapping[str, BoolArray]) -> tuple[Int64Array, ...]:
        """For each set of names that is asked for, the rule that decides each name; NONE where none does.

        Args:
            names: every name of the trace.
            asked: "kernels", "operators" and "calls": which names rows of that kind have.

        Raises:
            UsageError: a regular expression takes too long.
        """
        until, decided = deadline(), {kind: np.full(len(names), NONE, np.int64) for kind in asked}
        for i, rule in enumerate(self.rules):
            kind = _kind_of(rule)
            open_ = np.flatnonzero(asked[kind] & (decided[kind] < 0))
            left = tuple(names[j] for j in open_.tolist())
            is_regex = rule.pattern.startswith("re:")
            hit = found_by(left, rule.pattern[3:], until) if is_regex else meant_by(left, rule.pattern)
            decided[kind][open_[hit]] = i
        return tuple(decided.values())


NO_RULES = ClassRules()


def _kind_of(rule: ClassRule) -> str:
    """Which rows a rule is about: a call is no operator, and has classes of its own."""
    if rule.side == "kernels":
        return "kernels"
    return "calls" if rule.work in CALL_CLASSES else "operators"


def _class_of(side: str, label: str) -> WorkClass:
    """The class that a label means on a side; "comm" on the host is comm (host)."""
    for work in SIDES[side]:
        if label in (work.label, work.label.partition(" (")[0]):
            return work
    labels = tuple(work.label for work in SIDES[side])
    raise UsageError(
        f"no class {quoted(label)} for [{side}] of a file of classes", do=_instead(label, labels)
    )


def _patterns(side: str, label: str, patterns: object) -> list[str]:
    """The patterns of one class, each looked at once before any trace is read."""
    where = f"[{side}] {label} in a file of classes"
    if not isinstance(patterns, list) or not all(
        isinstance(one, str) and one not in ("", "re:") for one in patterns
    ):
        raise UsageError(
            f"{where} is no list of patterns", do=f'write "{label}" = ["my_kernel*", "re:^acme_"]'
        )
    for one in patterns:
        if one.startswith("re:"):
            found_by((), one[3:])
    return patterns


def _instead(wanted: str, have: tuple[str, ...]) -> str:
    near = near_names(wanted, have)
    return f"near names: {', '.join(near)}" if near else f"there are: {', '.join(have)}"
