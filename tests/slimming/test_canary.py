"""Nothing that a trace tells of a person or a place is in the bytes of the slimmed one, wherever it stood."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from stepcrit.slimming import Slimmed, SlimOptions, slim

BASE = 1_757_000_000_000_000_000


class Canaries:
    """Words that stand nowhere else, each made once."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        assert place not in self.words, place
        self.words[place] = f"zq{len(self.words):02d}canary"
        return self.words[place]


def event(name: str, cat: str, pid: int, tid: int, ts: str, dur: str, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": float(ts), "dur": float(dur), "args": args,
    }  # fmt: skip


def header(c: Canaries) -> dict[str, Any]:
    return {
        "schemaVersion": c("known number"),
        "displayTimeUnit": c("time unit"),
        "baseTimeNanoseconds": BASE,
        "record_shapes": [c("list for a number")],
        "host_name": c("host_name"),
        "username": c("username"),
        "hostname": {"a": c("host in an object")},
        "trace_id": c("trace_id"),
        "traceName": f"/home/{c('path of the trace')}/{c('file of the trace')}.json",
        "PT_PROFILER_JOB_NAME": c("job"),
        "mast_job_environment": {c("key in the environment"): c("value in the environment")},
        "cupti_version": c("version"),
        "nccl_version": f"2.{c('nccl')}",
        c("unknown header key"): 1,
        "metadata": {"deep": [{"deeper": {c("key at depth"): c("value at depth")}}]},
        "WARNING": [f"WARNING: on {c('warning')}"],
        "ERROR": [c("error")],
        "INFO": [c("info")],
        "stepcritSlim": {"schema": 1, "host": c("forged mark"), "dialect": [c("forged word")]},
        "deviceProperties": [
            {"id": 0, "name": c("device name"), "numSms": c("device number"), c("device key"): 1, "uuid": c("uuid")}
        ],
        "distributedInfo": {
            "backend": c("backend"), "rank": 0, "world_size": 2, "nccl_version": c("job nccl"),
            "master": c("unknown of the job"), c("key of the job"): 3,
            "pg_config": [
                {
                    "pg_name": c("group name"), "pg_desc": c("group description"), "uid": c("group uid"),
                    "backend_config": c("group backend"), "ranks": [0, c("rank in a list")], "pg_size": c("group size"),
                    c("key of a group"): c("value of a group"),
                },
                {"pg_name": "0", "ranks": f"[0, {c('ranks as text')}]"},
            ],
        },
    }  # fmt: skip


def labels(c: Canaries) -> list[dict[str, Any]]:
    rows = [
        ("process_name", 4100, 0, {"name": f"/opt/{c('process name')}/run"}),
        ("process_name", 0, 0, {"name": c("device process name"), c("key of a label"): 1}),
        ("process_labels", 4100, 0, {"labels": c("process label")}),
        ("thread_name", 4100, 4100, {"name": f"thread 4100 ({c('thread word')})"}),
        ("thread_name", 0, 7, {"name": c("stream label")}),
        ("thread_sort_index", 4100, 4100, {"sort_index": c("sort index")}),
        (c("metadata event"), 4100, 0, {"name": c("its name")}),
    ]
    return [{"ph": "M", "name": n, "pid": p, "tid": t, "ts": 0, "args": a} for n, p, t, a in rows]


def events(c: Canaries) -> list[Any]:
    told = {
        "External id": 1, "Input Dims": [[2, 2], c("dims")], "Input type": ["float", c("input type")],
        "Concrete Inputs": [c("concrete"), "1"], "Input Strides": [c("strides")], "Call stack": c("call stack"),
        "Module Hierarchy": c("module"), "Ev Idx": c("ev idx"), "kernel_file": f"/srv/{c('kernel file')}.py",
        "kernel_kwargs": {c("key of an argument"): c("deep argument")}, c("argument key"): 7, "Sequence number": c("seq"),
        "Fwd thread id": c("fwd"), "finished": c("finished"),
    }  # fmt: skip
    collective = {
        "Collective name": c("collective"), "dtype": c("dtype"), "Process Group Name": c("pg"),
        "Process Group Description": c("pg desc"), "Process Group Ranks": c("pg ranks"), "In split size": c("split"),
        "In msg nelems": c("nelems"), "Group size": 2,
    }  # fmt: skip
    on_device = {"stream": 7, "device": 0, "correlation": 5, "grid": [c("grid")], "context": c("context")}
    return [
        event("aten::mm", "cpu_op", 4100, 4100, "10", "50", **told),
        event(f"/home/{c('path in an operator')}/x.cu", "cpu_op", 4100, 4100, "11", "1"),
        event(f"op at host.{c('fqdn')}.internal", "cpu_op", 4100, 4100, "12", "1"),
        event(f"https://{c('url')}/x", "cpu_op", 4100, 4100, "13", "1"),
        event(f"by {c('mail')}@example.org", "cpu_op", 4100, 4100, "14", "1"),
        event(f"load C:\\Users\\{c('windows')}\\x", "user_annotation", 4100, 4100, "15", "1"),
        event(f"Optimizer.step#{c('optimizer')}.step", "user_annotation", 4100, 4100, "70", "5"),
        event("record_param_comms", "cpu_op", 4100, 4100, "16", "1", **collective),
        event("cudaLaunchKernel", "cuda_runtime", 4100, 4100, "20", "3", correlation=5, stream=c("handle"), ptr=c("ptr")),
        event("gemm", "kernel", 0, 7, "30", "20", **on_device),
        event("Stream Wait Event", "cuda_sync", 0, 7, "29", "1", cuda_sync_kind=c("sync kind"), stream=7),
        event(f"{c('file of a frame')}.py(3): {c('function')}", "python_function", 4100, 4100, "9", "60"),
        event(c("name of an unknown category"), c("category"), 4100, 4100, "17", "1", **{c("its key"): 1}),
        event("aten::add", "cpu_op", 4100, c("thread"), "18", "1"),  # type: ignore[arg-type]
        event("aten::sub", "cpu_op", c("process"), 1, "19", "1"),  # type: ignore[arg-type]
        {**event("aten::mul", "cpu_op", 4100, 4100, "21", "1"), "tts": c("other key"), c("event key"): c("event value")},
        {**event("aten::div", "cpu_op", 4100, 4100, "22", "1"), "ts": c("time"), "id": c("id"), "s": c("scope")},
        {**event("aten::neg", "cpu_op", 4100, 4100, "23", "1"), "args": c("text for arguments")},
        {**event("aten::abs", "cpu_op", 4100, 4100, "24", "1"), "ph": c("phase")},
        {"ph": "i", "name": c("instant"), "pid": 4100, "tid": 4100, "ts": 25, "args": {"x": c("of an instant")}},
        {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 4100, "tid": 4100, "ts": 26,
         "args": {"Bytes": c("bytes"), "Addr": c("address"), "Device Type": 1}},
        {"ph": "C", "name": c("counter"), "pid": 4100, "ts": 27, "args": {c("counter key"): 1}},
        {"ph": "s", "name": c("arrow"), "cat": c("arrow category"), "id": c("arrow id"), "pid": 4100, "tid": 4100, "ts": 20},
        c("no event at all"),
        [c("a list for an event")],
        *labels(c),
    ]  # fmt: skip


def written(c: Canaries) -> bytes:
    return json.dumps({**header(c), "traceEvents": events(c)}).encode()


def slimmed(data: bytes, **options: Any) -> Slimmed:
    return slim(io.BytesIO(data), None, SlimOptions(**options))


def forms(word: str) -> Iterator[bytes]:
    """A word as it is, reversed in case, and inside base64 whatever stands before it."""
    raw = word.encode()
    yield raw
    yield raw.hex().encode()
    for before in range(3):
        packed = base64.b64encode(b"x" * before + raw)
        yield packed[4 if before else 0 : -4]


def leaks(data: bytes, words: dict[str, str]) -> set[str]:
    texts = (data.lower(), gzip.decompress(data).lower())
    return {
        place
        for place, word in words.items()
        if any(form.lower() in text for form in forms(word) for text in texts)
    }


@pytest.mark.parametrize("anonymize", [False, True])
def test_no_word_of_a_person_or_a_place_is_in_the_slimmed_bytes(*, anonymize: bool) -> None:
    c = Canaries()
    data = written(c)
    assert len(c.words) >= 40
    assert leaks(gzip.compress(data), c.words) == set(c.words)
    assert leaks(slimmed(data, anonymize=anonymize).data, c.words) == set()


def test_with_stacks_names_of_files_and_functions_stay_and_with_anonymize_they_go() -> None:
    c = Canaries()
    data = written(c)
    stay = {"file of a frame", "function", "call stack", "module"}
    assert leaks(slimmed(data, stacks=True).data, c.words) == stay
    assert leaks(slimmed(data, stacks=True, anonymize=True).data, c.words) == set()


KEPT_BY_DESIGN = {
    "operator": ("mylib::zqcanary_op", "cpu_op"),
    "kernel": ("void zqcanary_kernel<float>(float*)", "kernel"),
    "call": ("cudaZqcanary", "cuda_runtime"),
    "range": ("zqcanary block", "user_annotation"),
}
"""Names are what an answer is about: those of operators, kernels and calls stay in any case, ranges unless anonymized."""


@pytest.mark.parametrize("place", KEPT_BY_DESIGN)
def test_names_that_answers_are_about_stay(place: str) -> None:
    name, cat = KEPT_BY_DESIGN[place]
    rows = [
        event("aten::mm", "cpu_op", 4100, 4100, "1", "50"),
        event(name, cat, 4100, 4100, "2", "3", correlation=1),
    ]
    data = json.dumps({"schemaVersion": 1, "traceEvents": rows}).encode()
    assert leaks(slimmed(data).data, {place: name}) == {place}
    assert leaks(slimmed(data, anonymize=True).data, {place: name}) == ({place} - {"range"})


def test_a_host_that_the_header_names_is_found_in_names() -> None:
    rows = [event("wait for gpu-node-17 (rank 3)", "user_annotation", 4100, 4100, "1", "50")]
    data = json.dumps({"host_name": "gpu-node-17", "traceEvents": rows, "schemaVersion": 1}).encode()
    text = gzip.decompress(slimmed(data).data).decode()
    assert "gpu-node-17" not in text
    assert "wait for anon-" in text


def of_steps(words: str) -> bytes:
    rows = [
        event(f"ProfilerStep#{i}{words}", "user_annotation", 4100, 4100, f"{i}000", "900") for i in range(4)
    ]
    rows += [event("aten::mm", "cpu_op", 4100, 4100, f"{i}010", "100") for i in range(4)]
    return json.dumps({"schemaVersion": 1, "traceEvents": rows}).encode()


@pytest.mark.parametrize("anonymize", [False, True])
@pytest.mark.parametrize("words", [" of zqcanary@corp.example", "/home/zqcanary/x", " zqcanary"])
def test_a_range_that_marks_a_step_still_does_and_the_mark_calls_it_as_the_range(
    *, words: str, anonymize: bool
) -> None:
    once = slimmed(of_steps(words), anonymize=anonymize)
    text = gzip.decompress(once.data).decode()
    stays = words == " zqcanary" and not anonymize
    assert ("zqcanary" in text) == stays
    assert once.mark.steps_of == 4
    assert once.mark.first_step.startswith("ProfilerStep#0")
    assert f'"name":"{once.mark.first_step}"' in text
    assert slimmed(once.data, anonymize=anonymize).data == once.data


def test_a_forged_mark_tells_nothing() -> None:
    first = gzip.decompress(slimmed(of_steps("")).data)
    forged = first.replace(b'"firstStep":"ProfilerStep#0"', b'"firstStep":"/home/zqcanary/x"')
    assert forged != first
    assert b"zqcanary" not in gzip.decompress(slimmed(forged).data)


PLACES = (
    "load_/home/zqcanary/x", ".../home/zqcanary/x", "$HOME/zqcanary/x", "~zqcanary/data", "open %2Fhome%2Fzqcanary%2Fx",
    "ssh zqcanary@gpu17", "GPU.ZQCANARY.INTERNAL", "x/Users/zqcanary/y.py:12",
)  # fmt: skip


@pytest.mark.parametrize("place", [*PLACES, "connect [2001:db8::1:beef]:80", "fd00:1:2:3:4:5:6:beef"])
def test_places_in_names_go_however_they_are_spelled(place: str) -> None:
    data = json.dumps(
        {"schemaVersion": 1, "traceEvents": [event(place, "user_annotation", 4100, 4100, "1", "50")]}
    ).encode()
    text = gzip.decompress(slimmed(data).data).lower()
    assert b"zqcanary" not in text
    assert b"beef" not in text


@pytest.mark.parametrize(
    "name",
    [
        "c10::add", "abc::bad::dead<de::ad>", "train/forward/loss", "a@b", "at::native::add/2", "12:30:45", "Adam.step",
        "void f<(int)1, std::array<char*, 3ul> >(int, A::B::C)", "x.INT", "step 1/2/3", "dead::beef::cafe",
    ],
)  # fmt: skip
def test_what_is_no_place_stays(name: str) -> None:
    data = json.dumps({"schemaVersion": 1, "traceEvents": [event(name, "kernel", 0, 7, "1", "50")]}).encode()
    assert json.dumps(name).encode() in gzip.decompress(slimmed(data).data)


def test_of_a_header_key_on_both_sides_of_the_events_the_last_value_counts() -> None:
    row = event("aten::mm", "cpu_op", 4100, 4100, "1", "50")
    first = json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1000, "traceEvents": [row]})
    both = f'{first[:-1]},"baseTimeNanoseconds":2000}}'
    assert json.loads(gzip.decompress(slimmed(both.encode()).data))["baseTimeNanoseconds"] == 2000
