"""Arrays are as wide as annotations say, which mypy cannot see: numpy calls what an index gives Any."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import pytest
from msgspec import Struct

import stepcrit
from stepcrit.cli.main import run
from stepcrit.model.arrays import order_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
WIDTHS = {
    "Int64Array": ("int64",),
    "Int32Array": ("int32",),
    "Int8Array": ("int8",),
    "IntArray": ("int32", "int64"),
    "BoolArray": ("bool",),
}
QUESTIONS = (
    ("analyze", "simulated/two_streams_sync_records", "--by", "class", "--json"),
    ("analyze", "recorded/accumulation_stacks", "--by", "line", "--json"),
    ("critical", "simulated/ddp_tail.rank1", "--full", "--json"),
    ("whatif", "simulated/full_queue_16", "--rank", "--by", "kernel", "--json"),
    ("whatif", "simulated/host_bound", "--shrink", "class:untracked=0.5", "--json"),
    ("doctor", "recorded/ddp_gloo_rank0", "--json"),
)


def functions_of(module: object, name: str) -> Iterator[FunctionType]:
    """The functions and methods that a module defines."""
    for value in vars(module).values():
        inner = vars(value).values() if isinstance(value, type) and value.__module__ == name else (value,)
        for each in inner:
            bare = each.func if isinstance(each, cached_property) else getattr(each, "fget", None) or each
            bare = getattr(bare, "__func__", bare)
            while hasattr(bare, "__wrapped__"):
                bare = bare.__wrapped__
            if isinstance(bare, FunctionType) and bare.__module__ == name:
                yield bare


class Watch:
    """Compares what functions are given and give with what they are annotated with."""

    def __init__(self) -> None:
        self.wrong: set[tuple[str, str, str]] = set()
        self.seen = 0
        self._known: dict[CodeType, FunctionType] = {}
        for module in pkgutil.walk_packages(stepcrit.__path__, "stepcrit."):
            if not module.name.endswith("__main__"):
                found = functions_of(importlib.import_module(module.name), module.name)
                self._known |= {each.__code__: each for each in found}

    def __call__(self, frame: FrameType, event: str, given: object) -> None:
        function = self._known.get(frame.f_code)
        if function is None or event not in ("call", "return"):
            return
        annotated = {k: v for k, v in function.__annotations__.items() if isinstance(v, str)}
        where = f"{function.__module__}.{function.__qualname__}"
        if event == "return":
            self._look(f"{where} gives", annotated.get("return", ""), given)
            return
        for name, annotation in annotated.items():
            if name != "return" and name in frame.f_locals:
                self._look(f"{where}({name})", annotation, frame.f_locals[name])

    def _look(self, where: str, annotation: str, value: Any) -> None:
        bare = annotation.removesuffix(" | None")
        if isinstance(value, np.ndarray) and bare in WIDTHS:
            self.seen += 1
            if value.dtype.name not in WIDTHS[bare]:
                self.wrong.add((where, annotation, value.dtype.name))
        elif isinstance(value, Struct) and type(value).__module__.startswith("stepcrit."):
            for name, inner in type(value).__annotations__.items():
                self._look(f"{type(value).__name__}.{name}", str(inner), getattr(value, name))


@pytest.mark.parametrize("asked", QUESTIONS, ids=" ".join)
def test_arrays_are_as_wide_as_annotated(asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    verb, name, *options = asked
    watch = Watch()
    sys.setprofile(watch)
    try:
        code = run([verb, str(FIXTURES / f"{name}.json.gz"), *options])
    finally:
        sys.setprofile(None)
    assert (code, capsys.readouterr().err) == (0, "")
    assert watch.wrong == set()
    assert watch.seen > 100


def test_a_width_that_is_not_annotated_is_seen() -> None:
    watch = Watch()
    sys.setprofile(watch)
    try:
        order_of(np.zeros(2, np.int8))  # type: ignore[arg-type]
    finally:
        sys.setprofile(None)
    assert watch.wrong == {("stepcrit.model.arrays.order_of(codes)", "Int32Array", "int8")}
