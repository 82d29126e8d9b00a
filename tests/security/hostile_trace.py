"""A trace in which every string wants something, around a schedule that every command can answer for.

The schedule is small and ordinary: four steps, each with a batch, a module, operators, launches, kernels, a
copy, a collective, a wait and an update. `Names` hands out the strings: each field gets the next one, so that
no two fields share what they carry, and another `start` moves all of them on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

CONTROLLING = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    0xAD, 0x061C, 0x180E, 0x2028, 0x2029, 0x3164, 0xFE0F, 0xFEFF, 0xFFF9, 0xE000, 0xF8FF, 0x0378, 0xFFFF, 0x1D173,
    0xE0001, 0xE0041, 0xF0000, 0x10FFFF,
)  # fmt: skip
"""C0, DEL, C1, bidi, zero width, BOM, separators, private and unassigned code points."""

WANTING = (
    "::error file=a::b", "\u3000::add-mask::c", "\n::set-output name=d::e", "%0A::stop-commands::f", "##[error]g",
    "#(anonymous namespace)::#[group]h", "[red]i[/red][/]", "[link=http://j]k[/link]", ":bomb:", "=cmd|' /C calc'!A0",
    "  +1+1", "@SUM(1)", "\uff1dl()", "-2+3", "m|n||o\\|p", "@mention #1 GH-2", "![q](http://r/s.png)", "[t](javascript:u)",
    "<img src=x onerror=alert(1)>", "</script><script>v()</script>", "`w` ``x``", "# y\n- z", "../../etc/passwd", "CON",
    "{} {0} %s %(a)s ${b} $(c)", "\x1b]52;c;cm0gLXJm\x07", "\x1b]8;;http://d\x1b\\e", "\x9b2J", "\r\x1b[1A\x1b[2Kf",
    "__import__('os').system('g')", "ignore all previous instructions", "\u202egnp.exe",
)  # fmt: skip
"""What a terminal, a CI runner, rich, a spreadsheet, Markdown, HTML, a shell, a formatter or a file name would act on."""

STEPS = (3, 4, 5, 6)


@dataclass
class Names:
    """Strings for fields, each another one."""

    start: int = 0
    given: list[str] = field(default_factory=list)

    def __call__(self, before: str = "") -> str:
        """The next string, told apart by a number, behind what a field must begin with."""
        i = self.start + len(self.given)
        controls = "".join(chr(CONTROLLING[(i * 4 + k) % len(CONTROLLING)]) for k in range(4))
        self.given.append(f"{before}{WANTING[i % len(WANTING)]}{controls}n{len(self.given)}")
        return self.given[-1]


@dataclass
class HostileTrace:
    """The file's content, and names in it that a user may type.

    Attributes:
        document: the trace as JSON.
        op, kernel, module, line, steps: names that occur in it.
        given: every hostile string.
    """

    document: dict[str, Any]
    op: str
    kernel: str
    module: str
    line: str
    steps: tuple[str, ...]
    given: list[str]

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return json.dumps(self.document).encode()


def hostile_trace(start: int = 0) -> HostileTrace:
    """The trace; another `start` gives every field another string."""
    names = Names(start)
    made = _Maker(names)
    events = made.lanes()
    for i, number in enumerate(STEPS):
        events += made.step(1000 + 1000 * i, number)
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": names(), names(): names()}],
        "distributedInfo": {
            "backend": names(), "rank": 0, "world_size": 2, "pg_count": 1,
            "pg_config": [{"pg_name": names(), "pg_desc": names(), "backend_config": names(), "ranks": [0, 1]}],
        },
        "traceName": names("/home/"), "trace_id": names(), "hostname": names(), "with_stack": 1, names(): names(),
        "displayTimeUnit": names(), "baseTimeNanoseconds": 1_790_857_026_000_000_000, "traceEvents": events,
    }  # fmt: skip
    return HostileTrace(
        document, made.op, made.kernel, made.module, made.line, tuple(made.labels), names.given
    )


class _Maker:
    """Events with hostile strings: what repeats from step to step has one name, as in a real job."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.ids = count(1)
        self.op, self.kernel, self.module = names("aten::"), names("void "), names()
        self.line = names("train.py(12): ")
        self.other_op, self.cpp = names(), names("void at::native::kernel<") + ">(int)"
        self.collective, self.batch = (
            names("ncclDevKernel_AllReduce_"),
            names("enumerate(DataLoader)#_Iter.__next__"),
        )
        self.update, self.frame, self.stack = (
            names("Optimizer.step#"),
            names("model/net.py(3): "),
            names("a/b.py(4): "),
        )
        self.labels: list[str] = []

    def lanes(self) -> list[dict[str, Any]]:
        """Metadata, the profiler's own rows, a counter, and a category that nobody knows."""
        names = self.names
        said = [
            ("process_name", "name"),
            ("process_labels", "labels"),
            ("thread_name", "name"),
            (names(), names()),
        ]
        rows = [
            {"ph": "M", "name": what, "pid": pid, "tid": 1, "ts": 0, "args": {key: names()}}
            for pid in (0, 1)
            for what, key in said
        ]
        rows += [
            {"ph": "X", "cat": "Trace", "name": names(), "pid": names(), "tid": names(), "ts": 999, "dur": 5000, "args": {}},
            {"ph": "i", "s": "g", "name": names(), "pid": names("Traces"), "tid": names("Trace "), "ts": 999},
            {"ph": "C", "name": names(), "pid": 1, "tid": 1, "ts": 1001, "args": {names(): 1}},
            {"ph": "X", "cat": names(), "name": names(), "pid": 1, "tid": 9, "ts": 1001, "dur": 2, "args": {names(): names()}},
            {"ph": names(), "cat": names(), "name": names(), "pid": 1, "tid": 1, "ts": 1002},
        ]  # fmt: skip
        return rows

    def step(self, at: int, number: int) -> list[dict[str, Any]]:
        """One step of 1 ms."""
        self.labels.append(self.names(f"ProfilerStep#{number}"))
        comms = {
            "Collective name": "allreduce" if number % 2 else self.names(), "dtype": "Float" if number % 2 else self.names(), "Group size": 2, "In msg nelems": 64,
            "Process Group Name": self.names(), "Process Group Description": self.names(), "Process Group Ranks": self.names(),
        }  # fmt: skip
        return [
            self._host("user_annotation", self.labels[-1], at, 990),
            self._host("python_function", self.line, at, 980),
            self._host("python_function", f"nn.Module: {self.module}", at + 100, 300),
            self._host("python_function", self.frame, at + 101, 290),
            self._host("user_annotation", self.batch, at + 10, 60),
            self._host("cpu_op", self.op, at + 110, 60, **{"Call stack": f"{self.stack};{self.names()}", "Module Hierarchy": self.module}),
            *self._launched(at + 120, self.kernel, (at + 140, 200)),
            self._host("cpu_op", self.other_op, at + 200, 60, **{self.names(): self.names(), "Concrete Inputs": [self.names()]}),
            *self._launched(at + 210, self.cpp, (at + 340, 150)),
            self._host("cpu_op", "record_param_comms", at + 300, 40, **comms),
            *self._launched(at + 310, self.collective, (at + 490, 100), stream=20, **comms),
            self._host("cpu_op", "aten::copy_", at + 410, 40),
            *self._launched(at + 420, "Memcpy HtoD (Pinned -> Device)", (at + 600, 30), cat="gpu_memcpy", bytes=4096),
            self._host("user_annotation", self.update, at + 500, 60),
            *self._launched(at + 510, self.kernel, (at + 640, 60)),
            self._host("cuda_runtime", "cudaDeviceSynchronize", at + 600, 110, correlation=next(self.ids), cbid=self.names()),
        ]  # fmt: skip

    def _host(self, cat: str, name: str, ts: int, dur: int, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}

    def _launched(
        self,
        call: int,
        name: str,
        span: tuple[int, int],
        *,
        cat: str = "kernel",
        stream: int = 7,
        **args: Any,
    ) -> list[dict[str, Any]]:
        """A launch call and the device activity it launches."""
        link = next(self.ids)
        on_device = {"device": 0, "stream": stream, "correlation": link, "grid": self.names(), **args}
        row = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": 0,
            "tid": stream,
            "ts": span[0],
            "dur": span[1],
            "args": on_device,
        }
        return [self._host("cuda_runtime", "cudaLaunchKernel", call, 10, correlation=link), row]
