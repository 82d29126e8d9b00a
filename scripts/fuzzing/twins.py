"""The same bytes read with plain and with compiled kernels: the same tables and label, or the same refusal."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
from msgspec import Struct

from fuzzing.judge import Target, fault, sampled
from fuzzing.mutate import LONGEST, broken, changed
from fuzzing.reading import damaged
from fuzzing.seeds import seed_trace, text_of
from stepcrit import kernels
from stepcrit.errors import InputError
from stepcrit.ingest import read_trace
from stepcrit.ingest.limits import Limits

CHUNKS = (1 << 20, 700, 61)
"""Sizes of the pieces that a text is read in: mostly the first alone."""


@contextmanager
def running(which: str) -> Iterator[None]:
    """Have kernels of one kind run."""
    before = os.environ.get(kernels.VARIABLE)
    os.environ[kernels.VARIABLE] = which
    try:
        yield
    finally:
        if before is None:
            del os.environ[kernels.VARIABLE]
        else:
            os.environ[kernels.VARIABLE] = before


def reading(which: str, data: bytes, **options: Any) -> Any:
    """What kernels of one kind make of some bytes: a trace, or all that its refusal says."""
    with running(which):
        try:
            return read_trace(io.BytesIO(data), **options)
        except InputError as error:
            return type(error), error.what, error.where, error.do


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two results differ: every field of every table, its type as well."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype == other.dtype and np.array_equal(one, other):
            return []
        return [f"{path}: {one.dtype} {one.tolist()!r:.300} and {other.dtype} {other.tolist()!r:.300}"]
    if isinstance(one, Struct) and type(one) is type(other):
        return [
            each
            for name in one.__struct_fields__
            for each in differences(getattr(one, name), getattr(other, name), f"{path}.{name}")
        ]
    return [] if type(one) is type(other) and one == other else [f"{path}: {one!r:.300} and {other!r:.300}"]


def unlike(data: bytes, **options: Any) -> list[str]:
    """How the two readings of some bytes differ."""
    return differences(
        reading(kernels.PLAIN, data, **options), reading(kernels.COMPILED, data, **options), "trace"
    )


def check_alike(data: bytes) -> None:
    """Both kinds of kernels say the same, whatever the size of pieces."""
    for size in CHUNKS if sampled(data, 8) and len(data) < 20_000 else CHUNKS[:1]:
        found = unlike(data, chunk_bytes=size, salvage=True, limits=Limits(names=1 << 22))
        if found:
            fault(f"plain and compiled kernels differ (pieces of {size} bytes): " + "; ".join(found[:4]))


# --- sound text in odd handwriting -------------------------------------------------------------------

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[,:{}\[\]]')


def _odd_string(token: bytes, dice: Random) -> bytes:
    inside = token[1:-1]
    return dice.choice(
        (
            token,
            b'"\\u00%02x' % (inside[0] if inside and inside[0] not in b"\\" else 0x41)
            + inside[len(inside) > 0 :] + b'"' if b"\\" not in inside else token,
            b'"\\ud83d\\ude00' + inside + b'"',
            b'"\\"Ev Idx"',
            b'"' + inside + b'\\/"',
            '"ö€😀'.encode() + inside + b'"',
            b'"' + inside * 50 + b'"',
            b'"%d"' % dice.randint(-2, 99),
            b"%d" % dice.randint(-2, 99),
        )
    )  # fmt: skip


def _odd_number(token: bytes, dice: Random) -> bytes:
    return dice.choice(
        (
            token,
            b'"' + token + b'"',
            b'" ' + token + b'"',
            token + b".0",
            token + b".1234567",
            token + b".9999999999999",
            token + b"e0",
            token + b"E+2",
            b"-" + token.lstrip(b"-"),
            b"0" + token,
            token + token,
            b"18446744073709551615",
            b"9223372036854775807",
            b"-9223372036854775808",
            b"9223372036854775808",
            b"18446744073709551616",
            b"-1",
            b'"-1"',
            b'"-01"',
            b'"0x%x"' % dice.randrange(2**40),
            b'"1_0"',
            b'""',
            b"null",
            b"true",
            b"4611686018427387.904",
            b"4611686018427386",
            b"-1152921504606846.976",
            b"2305843009213693.952",
            b"123456789012345.6789",
        )
    )


def _odd_mark(token: bytes, dice: Random) -> bytes:
    space = b"".join(dice.choice((b" ", b"\n", b"\t", b"\r")) for _ in range(dice.randint(0, 4)))
    return space + token + space


_ADDED = (
    b'"Trace iteration":1,', b'"Ev Idx":2,', b'"a":{"b":[1,{"c":[]}],"d":null},', b'"args":{"stream":3,"stream":-1},',
    b'"attr":{"correlation":5,"Call stack":"x"},', b'"Input Dims":[[2, 3],\n[]],', b'"Input Dims":"[[1]]",', b'"Input dims":[],',
    b'"Input type":["float",""],', b'"Input type":7,', b'"Collective name":"allreduce",', b'"graph id":4,', b'"id":"x",', b'"cat":"cuda_sync",',
    b'"External id":"z",', b'"size":4,', b'"Bytes":-1,', b'"bytes":"8",', b'"x":' + b"[" * 70 + b"]" * 70 + b",", b'"name":"' + b"n" * 70_000 + b'",',
    b'"\\u0070h":"M",', b'"ph":"E",', b'"correlation_id":9,', b'"sycl queue":1,', b'"l0 queue":"2",', b'"Call stack":"a;\\nb",',
)  # fmt: skip


def handwritten(dice: Random) -> bytes:
    """The text of a trace as no writer would write it; mostly JSON yet."""
    text = text_of(changed(seed_trace(dice), dice), dice)
    rate = dice.choice((0.0, 0.002, 0.02, 0.2))
    kinds: tuple[Callable[[bytes, Random], bytes], ...] = (_odd_string, _odd_number, _odd_mark)

    def rewritten(match: re.Match[bytes]) -> bytes:
        token = match[0]
        if dice.random() > rate:
            return token
        if token == b"{" and dice.random() < 0.5:
            return b"{" + dice.choice(_ADDED)
        kind = 0 if token[:1] == b'"' else 1 if token[:1] in b"-0123456789" else 2
        return kinds[kind](token, dice)

    return _TOKEN.sub(rewritten, text)[: 2 * LONGEST]


def written(dice: Random) -> bytes:
    """A text, odd, damaged, or both."""
    chance = dice.random()
    if chance < 0.35:
        return damaged(dice)
    return handwritten(dice) if chance < 0.8 else broken(handwritten(dice), dice)


KERNELS = Target("kernels", written, check_alike, bounded=2000, chunk=500)
