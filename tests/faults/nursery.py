"""Children that run the real command without paying for its imports: a process that has loaded all of it, and forks.

`Nursery` is the tests' end; run as a script, this file is the other one. A child is what `python -m stepcrit` is
once its imports are done: its descriptors, its limits, its user, its folder and its environment are its own, its
streams are opened as the interpreter opened them, and it ends as an interpreter does. `Nursery(loaded=False)` forks
before the imports: for what may go wrong during them.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}  # a process with threads must not fork


@dataclass(frozen=True)
class Done:
    """How a child ended.

    Attributes:
        code: its exit code; negative where a signal killed it.
        out: what it wrote to stdout, where it was not sent elsewhere.
        err: what it wrote to stderr.
        seconds: from the signal to its end, or all it took where none was sent.
    """

    code: int
    out: bytes
    err: bytes
    seconds: float


@dataclass(frozen=True)
class Birth:
    """What a child is given; everything but `argv` may be left out.

    Attributes:
        env: variables to set, or to unset where None.
        closed: descriptors that are not open.
        stdin, stdout, stderr: a file to open for it.
        uid: the user that it runs as.
        limits: resource limits, by their names in `resource`.
        first: what to do before the command starts: a function of this file and its arguments.
        sent: a signal, and the seconds after which it comes.
    """

    cwd: str = str(ROOT)
    env: dict[str, str | None] = field(default_factory=dict)
    closed: tuple[int, ...] = ()
    stdin: str = os.devnull
    stdout: str = ""
    stderr: str = ""
    uid: int = -1
    limits: dict[str, int] = field(default_factory=dict)
    first: tuple[Any, ...] = ()
    sent: tuple[int, float] = (0, 0.0)


class Nursery:
    """The tests' end."""

    def __init__(self, folder: Path, *, loaded: bool = True, **env: str | None) -> None:
        self._folder = folder
        self._usual: dict[tuple[str, ...], Done] = {}
        given = {k: v for k, v in {**os.environ, **QUIET, **env}.items() if v is not None}
        command = [sys.executable, __file__, *(["loaded"] if loaded else [])]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given, cwd=ROOT, close_fds=False
        )

    def run(self, *argv: str, **given: Any) -> Done:
        """A child from its birth to its end; what it may be given is told in `Birth`."""
        out, err = self._folder / "out", self._folder / "err"
        for path in (out, err):
            path.write_bytes(b"")
            path.chmod(0o666)
        birth = Birth(**{"stdout": str(out), "stderr": str(err), **given})
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = [os.fsencode(word).decode("latin-1") for word in argv]  # as bytes: an encoding is the child's
        request = {"argv": words, **birth.__dict__}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        return Done(told["code"], out.read_bytes(), err.read_bytes(), told["seconds"])

    def usual(self, *argv: str) -> Done:
        """How a child ends that was given nothing; run once."""
        if argv not in self._usual:
            self._usual[argv] = self.run(*argv)
        return self._usual[argv]

    def close(self) -> None:
        """No more children."""
        self._process.communicate()


# --- the other end ---------------------------------------------------------------------------


def serve(requests: Iterable[bytes], answers: int) -> None:
    """Answer each request with how its child ended. Returns in the children alone."""
    for line in requests:
        request = json.loads(line)
        started = time.monotonic()
        born, cry = os.pipe()
        child = os.fork()
        if not child:
            be_born(request, cry)
            return
        os.close(cry)
        os.read(born, 1)
        os.close(born)
        number, after = request["sent"]
        if number:
            time.sleep(after)
            started = time.monotonic()
            os.kill(child, number)
        _, status = os.waitpid(child, 0)
        told = {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - started}
        os.write(answers, json.dumps(told).encode() + b"\n")
    os._exit(0)


def be_born(request: dict[str, Any], cry: int) -> None:
    """Become what the request asks for, and say so."""
    for name, value in request["env"].items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    os.chdir(request["cwd"])
    places = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))
    for number, (name, how) in enumerate(places):
        opened = os.open(request[name], how)
        os.dup2(opened, number)
        os.close(opened)
    os.closerange(3, cry)
    os.closerange(cry + 1, 256)
    for name, limit in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    if request["uid"] >= 0:
        os.setgroups([])
        os.setgid(request["uid"])
        os.setuid(request["uid"])
    for number in request["closed"]:
        os.close(number)
    reopen(request["closed"])
    sys.argv = ["stepcrit", *(os.fsdecode(word.encode("latin-1")) for word in request["argv"])]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a traceback would be the interpreter's, not ours
    if request["first"]:
        name, *arguments = request["first"]
        globals()[name](*arguments)
    os.close(cry)


def reopen(closed: Sequence[int]) -> None:
    """The three streams as a new interpreter opens them, in the encodings that this one found."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, f"__{name}__")
        stream = None
        if number not in closed:
            raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
            buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
            stream = io.TextIOWrapper(buffer, old.encoding, old.errors, write_through=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


# --- what may happen first -------------------------------------------------------------------


def signal_at_import(number: int, k: int) -> None:
    """A signal comes while the k-th module is looked for."""

    class Finder:
        left = k

        def find_spec(self, *_: object) -> None:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), number)

    sys.meta_path.insert(0, Finder())


def signal_at_exit(number: int) -> None:
    """A signal comes when the answer is out."""
    atexit.register(os.kill, os.getpid(), number)


def ignoring(*numbers: int) -> None:
    """Born with signals ignored, as under nohup."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def ticking(seconds: float) -> None:
    """Every call of the system is interrupted over and over."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


def short_writes(most: int) -> None:
    """Whatever is written to takes a few bytes at a time."""
    on_calls(lambda name, call, args: call(args[0], args[1][:most]) if name == "write" else call(*args))


def killed(when: str, k: int, number: int = signal.SIGKILL) -> None:
    """A signal at the k-th call that a written file needs, "before" it is made or "after"."""
    left = [k]

    def dying(_: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        left[0] -= 1
        try:
            return call(*args) if when == "after" or left[0] else None
        finally:
            if not left[0]:
                os.kill(os.getpid(), number)

    on_calls(dying)


def without_network() -> None:
    """Whoever opens a socket or asks for an address fails."""

    def refuse(event: str, _: object) -> None:
        if event.startswith("socket."):
            raise RuntimeError(event)

    sys.addaudithook(refuse)


def gone_reader() -> None:
    """The reader of stdout has left."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)


def slow_reader() -> None:
    """Stdout is a pipe that takes nothing for now, most of the time."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # less than an answer
    if child := os.fork():
        os.close(writer)
        while piece := os.read(reader, 1 << 13):
            os.write(1, piece)
            time.sleep(0.001)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.set_blocking(writer, False)
    os.dup2(writer, 1)


def slow_writer() -> None:
    """Stdin is a pipe that has nothing for now, most of the time."""
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(reader)
        while piece := os.read(0, 1 << 10):
            time.sleep(0.001)
            os.write(writer, piece)
        os.close(writer)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.close(writer)
    os.set_blocking(reader, False)
    os.dup2(reader, 0)


class Calls:
    """Stands in for `os` where files are written: each call that can fail goes through `around`."""

    FAILING = (
        "stat", "open", "write", "close", "chmod", "replace", "scandir", "unlink", "dup", "fstat", "lseek", "read",
    )  # fmt: skip

    def __init__(self, around: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]) -> None:
        self._around = around

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return (lambda *args: self._around(name, real, args)) if name in self.FAILING else real


def on_calls(around: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]) -> None:
    """Put something around the calls that a written file needs."""
    import stepcrit.report.drafts  # noqa: PLC0415 - not while nothing of it is loaded

    vars(stepcrit.report.drafts)["os"] = Calls(around)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    if "loaded" in sys.argv:
        from stepcrit.cli.main import run

        trace = str(ROOT / "fixtures" / "simulated" / "item_sync.json.gz")
        for argv in (
            ["analyze", trace, "--json"],
            ["critical", trace],
            ["doctor", trace],
            ["calc", "amdahl", "--part", "1ms:2", "--of", "2ms"],
        ):
            run([*argv, "-o", os.devnull])
        run(["whatif", trace, "--shrink", "aten::mm=0.5", "-o", os.devnull])
    gc.freeze()  # a child need not look through all that it was born with
    serve(iter(sys.stdin.buffer.readline, b""), os.dup(1))
    if "loaded" in sys.argv:
        from stepcrit.__main__ import main

        main()
    else:
        import runpy

        runpy.run_module("stepcrit", run_name="__main__", alter_sys=True)
