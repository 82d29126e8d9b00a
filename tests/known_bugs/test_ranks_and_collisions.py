"""Which rank a file is of, and numbers that several things share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepcrit.model.events import Side
from tests.answers.drawn import call, op, work
from tests.builders import Event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, text, trace


def job(rank: Any, size: int = 4) -> dict[str, Any]:
    """A header's distributedInfo."""
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": size}}


def folder_of(tmp_path: Path, files: dict[str, bytes]) -> Path:
    """A folder with some files."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_b117_a_missing_rank_shows_in_the_ranks_and_the_world_size_of_the_others(ask: Ask) -> None:
    """No command takes several ranks yet: rank and world size, which tell who is missing, are in each answer."""
    found = [ask(loop(3), **job(rank)).data["trace"] for rank in (0, 1, 3)]
    assert {one["world_size"] for one in found} == {4}
    assert set(range(4)) - {one["rank"] for one in found} == {2}


@pytest.mark.parametrize("labels_first", [True, False])
def test_b119_labels_are_those_of_the_pid_as_it_is_written(*, labels_first: bool) -> None:
    label: Event = {
        "ph": "M", "cat": "", "name": "thread_name", "pid": 100000007, "tid": 9, "ts": 0, "args": {"name": "pt_autograd_0"},
    }  # fmt: skip
    rows = [
        {**op("aten::mm", 0, 10), "pid": 100000007, "tid": 9},
        {**op("aten::add", 5, 10), "pid": 7, "tid": 9},
    ]
    found = raw([label, *rows] if labels_first else [*rows, label])
    assert [found.events.lane_of(row).label for row in range(2)] == ["pt_autograd_0", ""]


def test_b120_one_stream_number_on_four_devices_is_four_queues(ask: Ask) -> None:
    """Each device is busy for 80 of 100 µs: 320 together, and no share above 1."""
    events = [op("replay", 0, 100)]
    for device in range(4):
        events += [
            call("cudaLaunchKernel", (2 * device, 2 * device + 1), device + 1),
            work("k", (20, 100), device + 1, stream=7, device=device),
        ]
    lanes = [lane for lane in raw(events).events.lanes if lane.side == Side.DEVICE]
    assert [(lane.device, lane.stream) for lane in lanes] == [(device, 7) for device in range(4)]
    data = ask(events).data
    assert data["device_busy_ns"] == {str(device): 80_000 for device in range(4)}
    for times in data["overlap"].values():
        assert times["busy_ns"] <= times["window_ns"] == 100_000


def test_b122_a_trace_read_after_another_has_its_own_clock() -> None:
    bases = (1_000_000_000, 5_000_000_000_000, None)
    found = [trace(loop(3), **({"baseTimeNanoseconds": base} if base else {})) for base in bases]
    assert [one.meta.origin_ns for one in found] == [1_000_000_000, 5_000_000_000_000, 0]
    assert {one.steps.median().elapsed_ns for one in found} == {100_000}
    assert {one.steps[0].host_start_ns for one in found} == {0}


def test_b124_a_trace_without_a_rank_is_analyzed_and_its_rank_called_unknown(ask: Ask) -> None:
    """Null with its reason, where 0 would be a guess: a rank is what the trace says, never what its name does."""
    for name in ("trace.json", "rank3.json", "r0-trace.json"):
        answer = ask(loop(3), name=name)
        assert (answer.code, answer.data["trace"]["rank"]) == (0, None)
        assert answer.unknown["trace.rank"] == "distributedInfo does not say"


def test_b126_a_folder_with_one_trace_without_a_rank_is_analyzed(ask: Ask, tmp_path: Path) -> None:
    answer = ask(folder_of(tmp_path, {"trace.json": text(loop(3))}))
    assert (answer.code, answer.data["trace"]["rank"], answer.err) == (0, None, "")


def test_b126_a_folder_without_a_trace_is_refused_without_a_traceback(ask: Ask, tmp_path: Path) -> None:
    answer = ask(folder_of(tmp_path, {"notes.txt": b"rank 0"}))
    assert answer.code == 3
    assert answer.err.startswith("error SC301")
    assert "Traceback" not in answer.err
    assert "notes.txt" in answer.err


def test_b127_the_rank_is_what_the_trace_says_whatever_its_name_says(ask: Ask) -> None:
    """Of eight files called r0 each tells its own rank; a folder of several is refused with their names."""
    found = [ask(loop(3), name=f"r0-{n}.json", **job(n, 8)).data["trace"]["rank"] for n in range(8)]
    assert found == list(range(8))


def test_b127_of_several_traces_in_a_folder_none_is_chosen(ask: Ask, tmp_path: Path) -> None:
    answer = ask(folder_of(tmp_path, {f"r0-{n}.json": text(loop(3), **job(n)) for n in range(2)}))
    assert answer.code == 3
    assert "r0-0.json" in answer.err
    assert "r0-1.json" in answer.err


@pytest.mark.parametrize(
    ("written", "rank"),
    [(2, 2), ("2", 2), (-1, None), (True, None), (2.5, None), (None, None), ("two", None)],
)
def test_b129_a_rank_comes_from_distributed_info_alone_and_never_from_a_pid(
    ask: Ask, written: object, rank: int | None
) -> None:
    moved = [{**one, "pid": 5} if one["cat"] != "kernel" else one for one in loop(3)]
    answer = ask(moved, **job(written))
    assert answer.data["trace"]["rank"] == rank
    assert ("trace.rank" in answer.unknown) == (rank is None)
