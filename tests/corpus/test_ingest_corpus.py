"""Every file of the corpus of real traces loads, or is refused for the right reason.

Needs STEPCRIT_CORPUS, the folder with catalog.tsv: the traces are other people's and not ours to ship.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stepcrit.errors import ForeignInputError, InputError
from stepcrit.ingest import read_trace
from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.trace import Harm, RawTrace

CORPUS = os.environ.get("STEPCRIT_CORPUS", "")

pytestmark = pytest.mark.skipif(not CORPUS, reason="STEPCRIT_CORPUS names no corpus of real traces")

REFUSED: dict[str, tuple[type[InputError], str]] = {
    "neg-cpuopmap/cpu_op_map_trace1.json": (ForeignInputError, "map from operators"),
    "neg-event-replay-ir/event_replay_ir.json": (ForeignInputError, "event-replay IR"),
    "neg-rocprofv3/908_results.json.gz": (ForeignInputError, "rocprofv3"),
    "neg-straggler-timeline/timeline-ST.json.gz": (ForeignInputError, "another program"),
}

DAMAGED = "dtu-windows-badjson/host_9792.1673466239037.pt.trace.json.gz"

# ev op rt drv k c s orph fan lead neg ov ovmax s f PS pid lanes, as the format reference counts them
# by another program. Two of its cells are not of these files: nccl_data has a lead of 7.495 (7.496 is
# a float error), and overlaid_critical_path_trace has 8 overlay flows less.
GOLDEN = [
    (
        "hta-mi250-ddp/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        "220 70 21 0 14 2 0 0 1 10.521 2 0 0 16 21 2 2 1",
    ),
    ("hta-trimmed/backward_thread.json", "7 3 1 0 1 0 0 0 1 64135.0 0 0 0 0 0 1 0 1"),
    ("hta-cpu-gloo-300/rank-34_trimmed.pt.trace.json.gz", "30 4 0 0 0 0 0 0 0 - 0 0 0 0 0 1 - 0"),
    (
        "hta-a100-critpath/benchmark_result_2869224_1695835535_trace.json.gz",
        "1408 359 361 0 79 16 3 0 1 11.0 16 0 0 155 345 0 0 2",
    ),
    ("hta-a100-critpath/event_sync.json.gz", "92 10 12 0 4 1 0 0 1 10.0 2 0 0 7 14 1 0 1"),
    (
        "hta-a100-critpath/overlaid_critical_path_trace.json.gz",
        "1724 359 331 0 79 16 3 0 1 12.0 18 0 0 343 503 0 0 2",
    ),
    (
        "hta-cupti-counters/benchmark_result_924719_1679055439_trace.json.gz",
        "4222 375 1862 0 0 0 0 0 0 - 0 0 0 104 1758 0 - 0",
    ),
    (
        "hta-v100-ddp2-r1/df_index_resolver.json.gz",
        "216092 56680 42373 0 19370 2040 880 0 1 6.0 88 0 0 22290 42373 5 1 2",
    ),
    ("hta-simple-add/benchmark_simple_add_trace.json.gz", "111 28 15 0 4 0 0 0 1 2466.0 0 0 0 9 10 0 0 1"),
    ("hta-mtia-inf/mtia_inference_rank_0.json.gz", "16158 10346 0 0 0 0 0 0 0 - 0 0 0 635 1166 0 - 0"),
    (
        "hta-a100-nccl-meta/nccl_data.json.gz",
        "40573 14346 8740 0 2700 960 114 0 1 7.495 15 0 0 3862 8652 3 0 2",
    ),
    (
        "hta-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
        "68692 23910 15329 0 4350 1600 145 0 1 6.302 2 0 0 6401 15023 5 0 1",
    ),
    ("hta-trimmed/base.json.gz", "33 6 5 0 6 6 6 16 1 52108.0 0 0 0 0 0 2 1 2"),
    ("hta-trimmed/test.json.gz", "34 9 5 0 5 6 6 16 1 57176.0 0 0 0 0 0 2 1 2"),
    (
        "hta-a100-8rank-r3/control.json.gz",
        "109123 40506 24692 0 8568 228 654 0 1 6.0 78 0 0 9450 24692 6 3 4",
    ),
    (
        "hta-v100-2rank-r1/test.json.gz",
        "105167 31236 21167 0 9876 4856 900 614 502 7.0 60 31 13.0 9984 26815 6 1 4",
    ),
    ("hta-triton/triton_example_v3.json.gz", "71 3 1 1 1 0 0 0 1 45.426 1 0 0 2 1 1 0 1"),
    (
        "tl-h100-hf/Falconsai_nsfw_image_detection__1016002.json.gz",
        "5138 1258 334 49 154 0 2 0 1 5.258 0 0 0 207 332 1 0 1",
    ),
    (
        "tl-h100-hf/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "18221 4186 1921 1 1465 1 241 509 1 4.825 1 0 0 1201 2428 1 0 1",
    ),
    (
        "tl-h100-hf/facebook_timesformer-base-finetuned-k400__1016002.json.gz",
        "50125 3540 881 48 446 2 86 0 1 6.685 2 0 0 538 925 1 0 1",
    ),
    (
        "tl-h100-hf/gaunernst_bert-small-uncased__1016001.json.gz",
        "2551 479 110 22 60 1 0 0 1 5.345 0 0 0 86 107 1 0 1",
    ),
    (
        "tl-h100-hf/google_owlv2-large-patch14-ensemble__1016001.json.gz",
        "132152 24378 8567 725 4330 85 750 0 1 4.472 79 0 0 5552 8905 1 0 1",
    ),
    ("tl-mi300x-sglang-decode/bs_32_rank0.json.gz", "61713 3556 1500 0 2 0 0 0 1 10.433 0 0 0 548 954 1 9 1"),
    (
        "tl-mi300x-sglang-decode/sglang_Qwen3-8B_decode.json.gz",
        "2058 61 29 0 555 3 0 0 544 9.342 75 0 0 14 573 0 9 2",
    ),
    (
        "tl-mi300x-vllm-full/graph_capture_rank_0.1773709742341309550.pt.trace.json.gz",
        "131243 3819 3128 0 7 3 0 0 1 7.142 0 0 0 433 2705 0 2 1",
    ),
    (
        "tl-mi300x-vllm-full/vllm_full_graph_execution.json.gz",
        "1993 100 20 0 425 9 0 0 421 6885.076 0 0 0 13 441 0 2 1",
    ),
    (
        "tl-mi300x-xdit-flux/capture_trace_rank_0.json.gz",
        "193255 7538 9039 0 2540 15 0 0 993 7.607 25 0 0 2577 9017 0 2 2",
    ),
    (
        "tl-mi300x-xdit-aiter/flux_aiter_sage_profile_trace_rank_0.json.gz",
        "229459 6409 2958 0 7830 36 0 0 1566 7.259 25 0 0 1602 9222 1 2 1",
    ),
    ("tl-mi210-gpuonly/gpu_only_trace.json.gz", "2443 0 631 0 562 0 0 0 1 4.795 0 0 0 562 631 0 1 1"),
    (
        "tl-mi300x-hf/Falconsai_nsfw_image_detection__1016002.json.gz",
        "5371 1381 437 0 155 0 0 0 1 19.153 0 0 0 155 437 1 2 1",
    ),
    (
        "tl-mi300x-hf/facebook_timesformer-base-finetuned-k400__1016002.json.gz",
        "49950 3591 851 0 447 2 0 0 1 24.223 2 0 0 449 851 1 2 1",
    ),
    (
        "tl-mi300x-hf/gaunernst_bert-small-uncased__1016001.json.gz",
        "2653 519 161 0 60 1 0 0 1 17.211 1 0 0 61 161 1 2 1",
    ),
    (
        "tl-mi300x-hf/google_owlv2-large-patch14-ensemble__1016001.json.gz",
        "130780 24783 8867 0 4255 85 0 0 1 18.005 72 2 2.415 4340 8867 1 2 1",
    ),
    (
        "tl-mi300x-resnet-ddp-r0/resnet_act_checkpoint.json.gz",
        "56451 8004 3100 0 2995 550 108 968 1 21206.664 0 0 0 2604 4149 3 2 2",
    ),
    (
        "tl-mi300x-norm/normalization_layer_test.json.gz",
        "8500 978 236 0 168 0 5 0 1 7.772 1 0 0 175 234 0 2 1",
    ),
    ("hta-cpu-of-gpujob/rank_not_found.json.gz", "2467 2424 0 0 0 0 0 0 0 - 0 0 0 0 0 1 - 0"),
]


def catalog() -> list[dict[str, str]]:
    """The corpus' own list."""
    if not CORPUS:
        return []
    with (Path(CORPUS) / "catalog.tsv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


FILES = [(f"{entry['slug']}/{entry['file']}", int(entry["n_events"])) for entry in catalog()]


@cache
def load(name: str) -> RawTrace:
    """Read a file once for all tests."""
    return read_trace(Path(CORPUS) / name)


def test_the_corpus_is_the_one_the_expectations_are_for() -> None:
    assert len(FILES) == 80
    assert {name for name, _ in FILES} >= REFUSED.keys() | {name for name, _ in GOLDEN}


@pytest.mark.parametrize(("name", "count"), FILES)
def test_a_file_loads_or_is_refused(name: str, count: int) -> None:
    if name in REFUSED:
        error, word = REFUSED[name]
        with pytest.raises(error) as caught:
            load(name)
        assert word in caught.value.what
        assert caught.value.do
        return
    trace = load(name)
    assert trace.meta.event_count == count == sum(trace.meta.phases.values())
    assert trace.meta.dropped == {}
    assert trace.meta.damage == () or name == DAMAGED
    assert trace.meta.unknown_cats == {}
    _check_table(trace)


def _check_table(trace: RawTrace) -> None:
    """What holds of any table."""
    events = trace.events
    begun = trace.meta.phases.get("X", 0) + trace.meta.phases.get("B", 0)
    assert len(events) == begun
    assert (events.end_ns >= events.start_ns).all()
    assert events.start_ns[~events.is_kind(EventKind.PROFILER)].min(initial=0) == 0
    key = list(zip(events.start_ns.tolist(), (-events.end_ns).tolist(), strict=True))
    assert key == sorted(key)
    assert len(set(events.order.tolist())) == len(events)
    assert events.lane.max(initial=NONE) < len(events.lanes)
    assert len(set(events.lanes)) == len(events.lanes)


def test_unescaped_windows_backslashes_are_kept_and_counted() -> None:
    trace = load(DAMAGED)
    text = gzip.decompress((Path(CORPUS) / DAMAGED).read_bytes())
    # The oracle: what every line of an event with a name holds, by a reader that knows this writer's layout.
    names = re.findall(rb'"name": "((?:[^"\\]|\\.)*)"', text)
    wrong = [name for name in names if re.search(rb'\\(?!["\\/bfnrtu])', name)]
    (damage,) = trace.meta.damage
    assert (damage.harm, damage.count) == (Harm.ESCAPE, len(wrong))
    assert damage.first_byte == text.index(wrong[0]) + wrong[0].index(b"\\") + 1
    assert damage.first_line == text[: damage.first_byte].count(b"\n") + 1
    assert {name.decode() for name in wrong} <= set(trace.events.names)
    assert trace.meta.lost_share == 0


@pytest.mark.parametrize(("name", "expected"), GOLDEN)
def test_the_columns_give_the_counts_of_the_reference(name: str, expected: str) -> None:
    trace = load(name)
    assert " ".join(_counts(trace)) == expected


def _counts(trace: RawTrace) -> list[str]:
    """The row of the golden table."""
    events, flows = trace.events, trace.flows
    by_cat = {cat: int((events.cat == code).sum()) for code, cat in enumerate(events.cats)}
    cats = ("cpu_op", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")
    drawn = np.array([cat != "fwdbwd" for cat in events.cats], np.bool_)[flows.cat]
    steps = [
        row
        for row in np.flatnonzero(events.is_kind(EventKind.ANNOTATION, EventKind.CPU_OP)).tolist()
        if events.name_of(row).startswith("ProfilerStep#")
    ]
    starts = int((drawn & (flows.is_start == 1)).sum())
    ends = int((drawn & (flows.is_start == 0)).sum())
    counted = [trace.meta.event_count, *[by_cat.get(cat, 0) for cat in cats]]
    return [
        *map(str, counted),
        *_launches(events),
        *_overlaps(events),
        str(starts),
        str(ends),
        str(len(steps)),
        *_lanes(events),
    ]


def _device_rows(events: EventTable) -> Int64Array:
    """Kernels, copies and memsets by category, so that MTIA's are not among them as in the reference."""
    cats = [cat in {"kernel", "gpu_memcpy", "gpu_memset"} for cat in events.cats]
    assert not events.is_kind(*DEVICE_KINDS)[~np.array(cats, np.bool_)[events.cat] & _is_nvidia(events)].any()
    return np.flatnonzero(np.array(cats, np.bool_)[events.cat])


def _is_nvidia(events: EventTable) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows of categories other than MTIA's."""
    return np.array([not cat.startswith("mtia") for cat in events.cats], np.bool_)[events.cat]


def _launches(events: EventTable) -> list[str]:
    """The columns orph, fan, lead and neg."""
    calls = {
        int(events.correlation[row]): row
        for row in np.flatnonzero(events.is_kind(EventKind.RUNTIME)).tolist()
    }
    pairs = [(row, calls.get(int(events.correlation[row]))) for row in _device_rows(events).tolist()]
    launched = [(row, call) for row, call in pairs if call is not None]
    fan: dict[int, int] = {}
    for _, call in launched:
        fan[call] = fan.get(call, 0) + 1
    leads = [int(events.start_ns[row] - events.start_ns[call]) for row, call in launched]
    early = sum(bool(events.start_ns[row] < events.end_ns[call]) for row, call in launched)
    lead = f"{Decimal(min(leads)) / 1000:.3f}" if leads else "-"
    lead = lead.replace(".000", ".0") if lead.endswith(".000") else lead
    return [str(len(pairs) - len(launched)), str(max(fan.values(), default=0)), lead, str(early)]


def _overlaps(events: EventTable) -> list[str]:
    """The columns ov and ovmax."""
    running: dict[int, int] = {}
    found = []
    for row in _device_rows(events).tolist():
        lane, start, end = int(events.lane[row]), int(events.start_ns[row]), int(events.end_ns[row])
        if start < running.get(lane, start):
            found.append(running[lane] - start)
        running[lane] = max(running.get(lane, end), end)
    return [str(len(found)), f"{max(found) / 1000:.3f}".replace(".000", ".0") if found else "0"]


def _lanes(events: EventTable) -> list[str]:
    """Device pids and lanes."""
    lanes = {events.lanes[lane] for lane in events.lane[_device_rows(events)].tolist()}
    return [",".join(sorted({lane.pid for lane in lanes})) or "-", str(len(lanes))]


def test_an_epoch_trace_with_nanoseconds_is_exact_in_every_row() -> None:
    name = "hta-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
    trace = load(name)
    text = gzip.decompress((Path(CORPUS) / name).read_bytes())
    plain = json.loads(text, parse_float=Decimal, parse_int=Decimal)["traceEvents"]
    expected = {
        order: (int(event["ts"] * 1000), int((event["ts"] + event["dur"]) * 1000))
        for order, event in enumerate(plain)
        if event["ph"] == "X"
    }
    rows, origin = trace.events, trace.meta.origin_ns
    found = zip(
        rows.order.tolist(), (rows.start_ns + origin).tolist(), (rows.end_ns + origin).tolist(), strict=True
    )
    assert {order: (start, end) for order, start, end in found} == expected


def test_reading_takes_less_memory_than_two_and_a_half_times_the_text() -> None:
    name = Path(CORPUS) / "tl-mi300x-xdit-aiter/flux_aiter_sage_profile_trace_rank_0.json.gz"
    code = (
        "import resource, sys; from stepcrit.ingest import read_trace\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak(); meta = read_trace(sys.argv[1]).meta\n"
        "print((peak() - before) / meta.json_bytes)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, str(name)], check=True, capture_output=True, text=True
    )
    assert float(child.stdout) < 2.5
