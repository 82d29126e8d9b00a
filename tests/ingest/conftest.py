"""Helpers of the load tests: JSON or bytes in, a RawTrace out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from stepcrit import kernels
from stepcrit.ingest import read_trace
from stepcrit.model.trace import RawTrace


@pytest.fixture(autouse=True, params=[kernels.PLAIN, kernels.COMPILED])
def _with_each_kind_of_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test of reading holds for both."""
    if request.param == kernels.COMPILED and kernels._absent():
        pytest.skip("no compiled kernels are built here")
    monkeypatch.setenv(kernels.VARIABLE, request.param)


@pytest.fixture
def read() -> Callable[..., RawTrace]:
    """Read events given as dicts, with header keys after them."""

    def reader(events: list[Any], **header: Any) -> RawTrace:
        document = {"schemaVersion": 1, "traceEvents": events, **header}
        return read_trace(io.BytesIO(json.dumps(document).encode()))

    return reader


@pytest.fixture
def read_text() -> Callable[..., RawTrace]:
    """Read a trace given as text or bytes."""

    def reader(text: str | bytes, **options: Any) -> RawTrace:
        return read_trace(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)

    return reader
