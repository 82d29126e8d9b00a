"""What stays of a trace and what goes: numbers, tracks, tokens, steps, and the mark that tells of it."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

import stepcrit
from stepcrit.errors import BrokenInputError, PartialError, UsageError
from stepcrit.ingest import read_trace
from stepcrit.ingest.dialect import DATED_TEXT, DIALECT_WORDS, Features, words_of
from stepcrit.ingest.slimmark import mark_text, read_mark
from stepcrit.model.slim import SlimMark
from stepcrit.model.trace import Harm
from stepcrit.slimming import SlimOptions, slim
from stepcrit.slimming.names import Names
from stepcrit.slimming.tokens import TOKEN, Tokens
from stepcrit.slimming.tracks import number_tracks
from tests.slimming.facts import slimmed

RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"
LONG = RECORDED / "loader_halved_before.json.gz"  # ProfilerStep#5 to #11

SPELLED = """{"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 4242, "tid": 4242, "ts": 5112645788593.120, "dur": 1E-3,
 "args": {"External id": 9007199254740993, "bytes": "128", "Sequence number": 7, "Input Dims": [[2, 3], []]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 4242, "tid": 4250, "ts": 5112645788593.10, "dur": 7890.100, "args": {}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": "5112645788594.5", "dur": 2, "args": {"stream": 7, "queued": 0}},
{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 5112645788590, "dur": 9}
]}"""


def document(data: bytes) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(data)))


def trace_of(*events: dict[str, Any], **header: Any) -> bytes:
    rows = [{"ph": "X", "cat": "cpu_op", "pid": 4100, "tid": 4100, "dur": 1.0, **event} for event in events]
    return json.dumps({"schemaVersion": 1, **header, "traceEvents": rows}).encode()


def marked(**fields: Any) -> SlimMark:
    usual = {"stacks": False, "anonymous": False, "steps_of": 20, "first_ns": 0, "dialect": ()}
    return SlimMark(**{**usual, "first_step": "ProfilerStep#12", "last_step": "ProfilerStep#16", **fields})


# --- numbers and tracks --------------------------------------------------------------------------


def test_every_number_that_stays_keeps_its_spelling() -> None:
    text = gzip.decompress(slimmed(SPELLED.encode()).data).decode()
    for spelled in [
        '"ts":5112645788593.120,"dur":1E-3',
        '"ts":5112645788593.10,"dur":7890.100',
        '"ts":"5112645788594.5","dur":2',
        '"External id":9007199254740993',
        '"bytes":"128"',
        '"baseTimeNanoseconds":1790857026000000000',
        '"Input Dims":[[2,3],[]]',
    ]:
        assert spelled in text
    assert "queued" not in text


def test_threads_keep_apart_and_devices_keep_their_numbers() -> None:
    events = document(slimmed(SPELLED.encode()).data)["traceEvents"]
    assert {e["name"]: (e["pid"], e["tid"]) for e in events} == {
        "aten::add": (1000, 1001),
        "aten::mul": (1000, 1002),
        "gemm": (0, 7),
        "PyTorch Profiler (0)": ("Spans", "PyTorch Profiler"),
    }


@pytest.mark.parametrize(("processes", "threads"), [(1, 3), (9, 2), (10, 2), (12, 5), (2, 1200)], ids=str)
def test_new_numbers_are_in_the_order_of_the_old_ones_texts(processes: int, threads: int) -> None:
    old = [
        (str(97 + 31 * p), str(1000 + 7 * t - 2000 * (t % 2)))
        for p in range(4, 4 + processes)
        for t in range(threads)
    ]
    tracks = number_tracks(old, ["0", "1"], Tokens(b"k"))
    new = [(str(tracks.pid(pid)), str(tracks.tid(pid, tid))) for pid, tid in sorted(old)]
    assert new == sorted(new)
    assert len(set(new)) == len(old)
    again = number_tracks(new, ["0", "1"], Tokens(b"k"))
    assert [(str(again.pid(pid)), str(again.tid(pid, tid))) for pid, tid in new] == new


def test_a_process_that_shares_its_number_with_a_device_keeps_it() -> None:
    tracks = number_tracks([("128", "9"), ("4100", "9")], ["128"], Tokens(b"k"))
    assert (tracks.pid("128"), tracks.pid("4100")) == ("128", 1000)


def test_a_thread_is_called_by_its_new_number() -> None:
    name = {"ph": "M", "name": "thread_name", "tid": 4107, "args": {"name": "thread 4107 (pt_autograd_0)"}}
    place = {"ph": "M", "name": "thread_sort_index", "tid": 4107, "args": {"sort_index": 4107}}
    odd = {"ph": "M", "name": "process_sort_index", "tid": 0, "args": {"sort_index": 31337}}
    rows = document(
        slimmed(
            trace_of(
                {"name": "aten::mm", "ts": 1.0},
                {"name": "aten::mm", "ts": 2.0, "tid": 4107},
                name,
                name,
                place,
                odd,
            )
        ).data
    )["traceEvents"]
    assert [row["args"] for row in rows if row["ph"] == "M"] == [
        {"name": "thread 1002 (pt_autograd_0)"},
        {"sort_index": 1002},
        {"sort_index": 0},
    ]


# --- tokens and names ----------------------------------------------------------------------------


def test_a_token_depends_on_the_key_and_stays_what_it_is() -> None:
    one, other = Tokens(b"key 1"), Tokens(b"key 2")
    token = one.of("gpu-node-17", "host name")
    assert TOKEN.fullmatch(token)
    assert token == Tokens(b"key 1").of("gpu-node-17", "host name") != other.of("gpu-node-17", "host name")
    assert other.of(token, "host name") == token
    assert one.of("", "host name") == ""
    assert dict(one.replaced) == {"host name": 1}


def test_an_unknown_device_is_the_same_in_every_trace_or_no_two_could_be_compared() -> None:
    def device_of(name: str, ts: float) -> str:
        data = slimmed(
            trace_of({"name": "aten::mm", "ts": ts}, deviceProperties=[{"id": 0, "name": name}])
        ).data
        return str(document(data)["deviceProperties"][0]["name"])

    assert device_of("Some New Accelerator 9000", 1.0) == device_of("Some New Accelerator 9000", 2.0)
    assert device_of("Some New Accelerator 9000", 1.0) != device_of("Some New Accelerator 9001", 1.0)
    assert TOKEN.fullmatch(device_of("Some New Accelerator 9000", 1.0))
    assert device_of("NVIDIA H200", 1.0) == "NVIDIA H200"


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("0", True),
        ("default_pg", True),
        ("mesh_dp_shard", True),
        ("c180dae7743d700d8e30df1902fc6b1e_0", True),  # torch's hash of a group's ranks
        ("c180dae7743d700d8e30df1902fc6b1e", False),
        ("our secret group", False),
    ],
)
def test_names_of_groups_that_torch_gives_stay_as_ranks_are_matched_by_them(
    name: str, *, stays: bool
) -> None:
    job = {"rank": 0, "world_size": 2, "backend": "nccl", "pg_config": [{"pg_name": name, "ranks": [0, 1]}]}
    args = {"Collective name": "allreduce", "Process Group Name": f'"{name}"', "dtype": "Float"}
    found = document(slimmed(trace_of({"name": "x", "ts": 1.0, "args": args}, distributedInfo=job)).data)
    told = (
        found["distributedInfo"]["pg_config"][0]["pg_name"],
        found["traceEvents"][0]["args"]["Process Group Name"],
    )
    assert (told == (name, f'"{name}"')) == stays
    assert told[0] == told[1].strip('"')  # one group, one name
    assert found["traceEvents"][0]["args"]["Collective name"] == "allreduce"


def test_without_a_key_tokens_differ_between_traces_and_with_one_they_do_not() -> None:
    traces = [trace_of({"name": "aten::mm", "ts": ts}, host_name="gpu-node-17") for ts in (1.0, 2.0)]
    own = {document(slimmed(data).data)["host_name"] for data in traces}
    shared = {document(slimmed(data, key=b"a key of ours, long enough").data)["host_name"] for data in traces}
    assert (len(own), len(shared)) == (2, 1)
    assert slimmed(traces[0]).data == slimmed(traces[0]).data


def test_the_key_is_not_what_answers_tell_of_the_input() -> None:
    """`sha256` of the input is in every answer: who has one must not be able to try words."""
    data = trace_of({"name": "aten::mm", "ts": 1.0}, host_name="gpu-node-17")
    token = document(slimmed(data).data)["host_name"]
    digest = read_trace(io.BytesIO(data)).meta.sha256
    assert token not in {
        Tokens(key).of("gpu-node-17", "") for key in (digest.encode(), bytes.fromhex(digest), b"")
    }


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("aten::add_", "aten::add_"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", None),
        ("Torch-Compiled Region: 0/1", None),
        ("a / b / c, 3 GB/s", None),
        ("GPU->CPU", None),
        ("std::pair<a, b> f() [with T = x.y]", None),
        ("torch.nn.functional.linear", None),
        ("## Call CompiledFxGraph fabc ##", None),
        ("Memcpy HtoD (Pinned -> Device)", None),
        ("open /home/me/my model/x.bin now", "open @ now"),
        ("/secret", "@"),
        ("~/models/x", "@"),
        ("C:/Users/me/x.py", "@"),
        ("file:///tmp/store", "@"),
        ("mail me@example.org", "mail @"),
        ("at node17.cluster.internal:8080", "at @:8080"),
        ("to 10.1.2.33", "to @"),
    ],
)
def test_only_places_and_people_are_taken_out_of_names(name: str, clean: str | None) -> None:
    told = Names(Tokens(b"k"), anonymous=False).operator(name)
    assert TOKEN.sub("@", told) == (name if clean is None else clean)


@pytest.mark.parametrize("name", ["on qz17", "on qz17.corp.example", "qz17/step", "at:qz17"])
def test_a_host_of_the_header_goes_from_names_long_or_short(name: str) -> None:
    event = {"name": name, "cat": "user_annotation", "ts": 1.0}
    small = gzip.decompress(slimmed(trace_of(event, host_name="qz17.corp.example")).data)
    assert b"qz17" not in small
    assert slimmed(small).data == slimmed(trace_of(event, host_name="qz17.corp.example")).data


@pytest.mark.parametrize(
    ("name", "plain", "anonymous"),
    [
        ("train.py(12): step", "train.py(12): step", "@.py(12): @"),
        ("/home/me/proj/train.py(12): step", "@/train.py(12): step", "@/@.py(12): @"),
        ("src/train.py(12): step", "src/train.py(12): step", "@/@.py(12): @"),
        ("/v/lib/python3.11/site-packages/torch/a.py(1): f", "site-packages/torch/a.py(1): f", None),
        ("/usr/lib/python3.11/threading.py(9): run", "lib/python3.11/threading.py(9): run", None),
        ("torch/nn/modules/linear.py(1): forward", "torch/nn/modules/linear.py(1): forward", None),
        ("C:\\Users\\me\\b.py(3): h", "@/b.py(3): h", "@/@.py(3): @"),
        ("../../home/me/b.py(3): h", "@/b.py(3): h", "@/@.py(3): @"),
        ("nn.Module: MyNet_0", "nn.Module: MyNet_0", "nn.Module: @_0"),
        ("<built-in method add of type object at 0x7f1>", "<built-in method add of type object at 0x7f1>", "<built-in method add of type object>"),
    ],
)  # fmt: skip
def test_a_frame_keeps_what_tells_library_from_user(name: str, plain: str, anonymous: str | None) -> None:
    for is_anonymous, wanted in ((False, plain), (True, anonymous or plain)):
        told = Names(Tokens(b"k"), anonymous=is_anonymous).frame(name)
        assert TOKEN.sub("@", told) == wanted
        assert Names(Tokens(b"other"), anonymous=is_anonymous).frame(told) == told


@pytest.mark.parametrize(
    ("name", "anonymous"),
    [
        ("ProfilerStep#12", "ProfilerStep#12"),
        ("Optimizer.step#AdamW.step", "Optimizer.step#AdamW.step"),
        ("Optimizer.step#Mine.step", "Optimizer.step#@.step"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        ("nccl:all_reduce", "nccl:all_reduce"),
        ("secret block", "@"),
    ],
)  # fmt: skip
def test_ranges_that_tell_steps_and_communication_stay_when_anonymous(name: str, anonymous: str) -> None:
    told = Names(Tokens(b"k"), anonymous=True).range(name)
    assert TOKEN.sub("@", told) == anonymous


# --- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "first", "last", "stay"),
    [
        (None, "ProfilerStep#7", "ProfilerStep#11", 6),
        ("all", "ProfilerStep#5", "ProfilerStep#11", 7),
        ("last:3", "ProfilerStep#9", "ProfilerStep#11", 4),
        ("7-8", "ProfilerStep#7", "ProfilerStep#8", 3),
        ("ProfilerStep#7-9", "ProfilerStep#7", "ProfilerStep#9", 4),
        ("6", "ProfilerStep#6", "ProfilerStep#6", 2),
        ("5", "ProfilerStep#5", "ProfilerStep#5", 1),
        ("-1", "ProfilerStep#11", "ProfilerStep#11", 2),
    ],
)
def test_the_steps_asked_for_stay_and_the_one_before_them(
    asked: str | None, first: str, last: str, stay: int
) -> None:
    found = slimmed(LONG, steps=asked)
    assert (found.mark.first_step, found.mark.last_step, found.mark.steps_of) == (first, last, 7)
    assert found.steps[1] == stay
    labels = [step.label for step in stepcrit.load(io.BytesIO(found.data)).steps]
    assert (len(labels), labels[-1]) == (stay, last)


def test_five_steps_around_the_median_stay_of_a_long_trace_and_all_of_a_short_one() -> None:
    median = stepcrit.load(LONG).steps.median().label
    kept = [step.label for step in stepcrit.load(io.BytesIO(slimmed(LONG).data)).steps][1:]
    assert len(kept) == 5
    assert median in kept
    short = slimmed(RECORDED / "dataloader_before.json.gz")
    assert short.steps == (5, 5)


@pytest.mark.parametrize("asked", ["nine", "99", "last:0", "last:8", "8-6", "5-99", "", "all of them"])
def test_steps_that_are_not_there_are_refused(asked: str) -> None:
    with pytest.raises(UsageError):
        slimmed(LONG, steps=asked)


@pytest.mark.parametrize("steps", ["all", "3", "last:2"])
@pytest.mark.parametrize("stacks", [True, False])
def test_a_range_that_is_begun_and_ended_goes_with_its_end(steps: str, *, stacks: bool) -> None:
    """One thread, all as B and E: an operator around all steps, in each step an operator, a frame and one in it."""
    spans = [("cpu_op", "around", 0, 500)]
    for i in range(1, 5):
        at = 100 * i
        spans += [
            ("user_annotation", f"ProfilerStep#{i}", at, at + 90),
            ("cpu_op", "aten::mm", at + 10, at + 60),
        ]
        spans += [
            ("python_function", f"t.py({i}): f", at + 20, at + 50),
            ("cpu_op", "aten::add", at + 30, at + 40),
        ]
    place = {"pid": 4100, "tid": 4100}
    begun = [{"ph": "B", "cat": c, "name": n, "ts": a, **place} for c, n, a, _ in spans]
    ended = [{"ph": "E", "ts": b, **place} for *_, b in spans]
    both = sorted([*begun, *ended], key=lambda event: int(str(event["ts"])))
    whole = [{"ph": "X", "cat": c, "name": n, "ts": a, "dur": b - a, **place} for c, n, a, b in spans]
    found = []
    for events in (both, sorted(whole, key=lambda event: int(str(event["ts"])))):
        text = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
        after = read_trace(io.BytesIO(slimmed(io.BytesIO(text), steps=steps, stacks=stacks).data))
        assert after.meta.dropped == {}
        rows = zip(after.events.start_ns.tolist(), after.events.end_ns.tolist(), strict=True)
        found.append([(after.events.name_of(i), *row) for i, row in enumerate(rows)])
    assert found[0] == found[1]
    assert ("around", 0, 500_000) in found[0]


def test_times_of_a_part_are_told_from_the_beginning_of_the_whole() -> None:
    whole, part = stepcrit.load(LONG), stepcrit.load(io.BytesIO(slimmed(LONG, steps="9").data))
    assert part.meta.origin_ns == whole.meta.origin_ns
    assert part.view("9").step.start_ns == whole.view("9").step.start_ns > 0


def test_allocator_events_of_other_steps_go_and_those_of_the_steps_stay() -> None:
    source = RECORDED / "accumulation_update.json.gz"
    whole, part = read_trace(source), read_trace(io.BytesIO(slimmed(source, steps="4").data))
    low = stepcrit.load(source).steps[1].host_start_ns
    assert 0 < len(part.memory.ts_ns) < len(whole.memory.ts_ns)
    assert part.memory.ts_ns.tolist() == whole.memory.ts_ns[whole.memory.ts_ns >= low].tolist()


# --- what was wrong stays wrong ------------------------------------------------------------------


def damaged(cut: float) -> bytes:
    text = gzip.decompress(LONG.read_bytes())
    return text[: int(len(text) * cut)]


def test_a_cut_trace_stays_one_that_is_cut() -> None:
    before = read_trace(io.BytesIO(damaged(0.99)))
    found = slimmed(damaged(0.99), steps="all")
    after = read_trace(io.BytesIO(found.data))
    assert before.meta.is_cut
    assert after.meta.is_cut
    assert [(one.harm, one.count) for one in after.meta.damage] == [
        (one.harm, one.count) for one in before.meta.damage
    ]
    assert slimmed(found.data).data == found.data
    with pytest.raises(PartialError):
        slimmed(damaged(0.99), strict=True)
    with pytest.raises(PartialError):
        stepcrit.load(io.BytesIO(found.data), stepcrit.Options(strict=True))


def test_a_trace_that_lost_much_is_refused_again_after_slimming() -> None:
    whole = gzip.decompress(LONG.read_bytes())
    middle = len(whole) // 2
    bad = whole[:middle] + b"\x00" * (len(whole) // 8) + whole[middle + len(whole) // 8 :]
    with pytest.raises(BrokenInputError):
        slimmed(bad)
    found = slimmed(bad, salvage=True, steps="all")
    with pytest.raises(BrokenInputError, match="damaged"):
        read_trace(io.BytesIO(found.data))
    again = read_trace(io.BytesIO(found.data), salvage=True)
    assert again.meta.lost_share == read_trace(io.BytesIO(bad), salvage=True).meta.lost_share > 0.05


def test_events_that_cannot_be_read_are_counted_alike_after_slimming() -> None:
    rows: list[Any] = [
        {"name": "aten::mm", "ts": 1.0},
        {"name": "aten::mm", "ts": "late"},
        {"name": "aten::mm", "ts": None},
        {"name": "aten::mm", "ts": 2.0, "dur": "long"},
        {"name": "aten::mm", "ts": 3.0, "dur": -4.0},
        {
            "name": "aten::mm",
            "ts": 4.0,
            "args": {"External id": "x", "correlation": [1], "Sequence number": {}},
        },
        {"name": "aten::mm", "ts": 5.0, "args": 7},
        {"name": ["aten::mm"], "ts": 6.0},
        {"name": "aten::mm", "ts": 7.0, "ph": 4},
        {"name": "aten::mm", "ts": 8.0, "pid": {"a": 1}},
        {"name": "[memory]", "ph": "i", "ts": 9.0, "args": {"Total Allocated": 4}},
    ]
    text = trace_of(*rows).replace(b'"traceEvents": [', b'"traceEvents": [null, 7, "word", [1], ')
    before = read_trace(io.BytesIO(text))
    after = read_trace(io.BytesIO(slimmed(text).data))
    assert sum(before.meta.dropped.values()) > 10
    assert after.meta.dropped == before.meta.dropped


@pytest.mark.parametrize(
    "text",
    [
        b"{}", b"null", b'"slim"', b'{"schema":2}', b"[1]", b'{"schema":1,"stacks":1}', b"{" * 500,
        mark_text(marked(first_ns=2**62 + 1)),
    ],
)  # fmt: skip
def test_a_mark_that_says_nothing_clear_is_none(text: bytes) -> None:
    assert read_mark(text) is None
    assert read_mark(None) is None


def test_a_mark_comes_back_and_words_that_nobody_says_do_not() -> None:
    word = next(iter(DATED_TEXT.values()))
    mark = marked(stacks=True, first_ns=-5, dialect=(word,), damage=((Harm.CUT.name, 1),), lost_share=0.25)
    assert read_mark(mark_text(mark)) == mark
    forged = mark_text(mark).replace(b'"dialect":[', b'"dialect":["secret",').replace(b'"CUT"', b'"NOTHING"')
    back = read_mark(forged)
    assert back is not None
    assert (back.dialect, back.damage) == ((word,), ())


def test_a_marks_origin_later_than_the_first_row_is_not_believed() -> None:
    mark = mark_text(marked(first_ns=10**9))
    text = trace_of({"name": "aten::mm", "ts": 1.0}).replace(b"{", b'{"stepcritSlim": ' + mark + b",", 1)
    assert read_trace(io.BytesIO(text)).meta.origin_ns == 1000


def test_every_word_that_dates_a_writer_can_stand_in_a_mark() -> None:
    some = [
        Features(is_array, keys, ("Kernel", "async_cpu_to_gpu", "cuda_driver"), set(DATED_TEXT), whole, first)
        for is_array in (False, True)
        for keys in (("displayTimeUnit", "baseTimeNanoseconds", "traceEvents"), ("traceEvents",))
        for whole in (False, True)
        for first in (0, 2 * 10**18)
    ]
    assert {word for features in some for word in words_of(features)} == DIALECT_WORDS


# --- the face ------------------------------------------------------------------------------------


def test_the_library_writes_a_file_and_tells_what_became_of_the_trace(tmp_path: Path) -> None:
    out = tmp_path / "small.json.gz"
    told = slim(LONG, out, SlimOptions(steps="median"))
    assert out.read_bytes() == told.data
    assert (told.before.file_bytes, told.after.file_bytes) == (LONG.stat().st_size, len(told.data))
    assert told.left_out["rows of other steps"] > 0
    with pytest.raises(UsageError, match="there already"):
        slim(LONG, out)
    assert slim(LONG, out, SlimOptions(steps="all"), force=True).data == out.read_bytes()
    assert stepcrit.slim is slim


def test_the_library_never_writes_onto_the_trace(tmp_path: Path) -> None:
    source = tmp_path / "t.json.gz"
    source.write_bytes(LONG.read_bytes())
    with pytest.raises(UsageError, match="overwrite"):
        slim(source, source, force=True)
    assert source.read_bytes() == LONG.read_bytes()


def test_no_time_and_no_name_are_in_the_gzip_frame() -> None:
    data = slimmed(LONG).data
    assert (data[:4], data[4:8]) == (b"\x1f\x8b\x08\x00", bytes(4))
