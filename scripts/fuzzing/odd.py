"""Values that nobody should write, and that somebody does."""

from __future__ import annotations

from random import Random
from typing import Any

NAMES = (
    "", " ", "aten::mm", "aten::*", "ProfilerStep#1", "ProfilerStep#-1", "ProfilerStep#99999999999999999999", "ProfilerStep*",
    "Optimizer.step#SGD.step", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "[memory]", "thread_name",
    "cudaLaunchKernel", "cudaDeviceSynchronize", "cudaStreamWaitEvent", "cudaEventRecord", "cudaGraphLaunch", "hipLaunchKernel",
    "void gemm<float, 128>(int)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", "Memcpy DtoH (Device -> Pageable)",
    "autograd::engine::evaluate_function: AddBackward0", "nn.Module: Linear_0", "a.py(12): f", "<built-in method x>",
    "x" * 3000, "<" * 400, "a<b<c>>(d=e)", "=cmd|' /C calc'!A0", "\x1b[2J\x07", "\u202egnp.exe\u2066\u200b", "\ud800 lone", "\x00",
    "line\nbreak\r\ttab", "::error::x", "##[error]", "[red]x[/red]", "</script><img src=x>", "| pipe `tick`", "日本語カーネル 👩‍💻 ﷽",
    "nan", "None", "-1", "0", "re:(a+)+$", "class:gemm", "stream:7", "step:1", "module:x",
)  # fmt: skip

NUMBERS = (
    0, 1, -1, 2, 7, 1000, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**18, 10**30, -(10**30),
    0.0, -0.0, 0.1, 0.5, 1e-9, 1e300, -1e300, 1.7e15, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip

TEXTS = (
    b"NaN", b"Infinity", b"-Infinity", b"N/A", b"nan", b"None", b"undefined", b"True", b"-", b"+1", b".5", b"5.", b"0x10", b"01", b"1e",
    b"1e999", b"-1e999", b"1e-999", b"1E400", b"9" * 400, b"0." + b"1" * 400, b"1" + b"0" * 5000, b"''", b'""', b"null", b"{}", b"[]",
    b"[[[[]]]]", b'"\\ud800"', b'"\\x"', b'"\xff\xfe"', b"1_000", b"1,5", b"\xef\xbb\xbf", b"//c", b"/**/", b"[" * 3000, b'{"a":' * 1500,
)  # fmt: skip
"""What may stand where a JSON value should."""

CATEGORIES = (
    "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "python_function",
    "overhead", "gpu_user_annotation", "Trace", "ac2g", "fwdbwd", "Operator", "Kernel", "hpu_op", "mtia_ccp_events", "enqueue", "", "foo",
)  # fmt: skip

PHASES = ("X", "X", "X", "B", "E", "s", "f", "i", "I", "M", "C", "b", "e", "", "XX", "\ud800")


def value(dice: Random) -> Any:
    """Any JSON value, small or absurd."""
    return dice.choice((_scalar, _scalar, _scalar, _list, _object))(dice)


def _scalar(dice: Random) -> Any:
    return dice.choice(
        (
            dice.choice(NAMES),
            dice.choice(NUMBERS),
            None,
            True,
            False,
            str(dice.choice(NUMBERS)),
            dice.randint(-5, 300),
        )
    )


def _list(dice: Random) -> Any:
    return [_scalar(dice) for _ in range(dice.randint(0, 4))]


def _object(dice: Random) -> Any:
    return {
        dice.choice(("name", "rank", "id", "ranks", "correlation", "stream", "a")): _scalar(dice)
        for _ in range(dice.randint(0, 3))
    }


def time_us(dice: Random) -> Any:
    """A time that JSON can write: small, equal, huge, negative, with digits that no double has."""
    return dice.choice(
        (0, 1, 1, 5, dice.randint(0, 50), dice.randint(0, 50), dice.randint(0, 10**6), dice.random() * 100, 9_223_372_036_854_775,
         4_611_686_018_427_387, 10**15, -dice.randint(1, 10**6), -(10**15), 1e-3, 10**25, 1_700_000_000_000_000.123)
    )  # fmt: skip
