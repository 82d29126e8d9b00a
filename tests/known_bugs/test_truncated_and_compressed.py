"""Files that stop, that two writers wrote, and compressed ones under any name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from backports import zstd

from stepcrit.errors import InputError
from stepcrit.model.trace import Harm
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, names, raw, text

TRACE = text(loop(10))
"""40 events: one of them is less than the twentieth that may be lost."""


def test_b032_a_file_cut_anywhere_in_its_last_event_keeps_all_others() -> None:
    last = TRACE.rindex(b'{"ph"')
    for cut in range(last, len(TRACE) - 1):
        found = raw(TRACE[:cut])
        # the last event is whole once its own brace is there
        whole = cut >= TRACE.rindex(b"}]}") + 1
        assert len(found.events) == 39 + whole, cut
        assert Harm.CUT in {one.harm for one in found.meta.damage}, cut


def test_b032_what_was_cut_is_told_with_its_place_and_strict_refuses_it(ask: Ask) -> None:
    cut = TRACE[:-30]
    answer = ask(cut, "doctor")
    (harm,) = answer.data["damage"]
    assert (answer.code, harm["harm"], harm["first_byte"]) == (0, "cut", len(cut))
    assert answer.data["phases"] == {"X": 39}
    assert "L105" in ask(cut).codes
    assert "L105" in answer.codes
    assert ask(cut, "analyze", "--strict").code == 4


def test_b032_the_verdict_of_a_cut_file_says_that_it_is_about_what_is_left(ask: Ask) -> None:
    """Writers put device work last: its lack is no idle time, and no fault of the recording."""
    whole, host = loop(10), [one for one in loop(10) if one["cat"] != "kernel"]
    assert len(host) < len(whole)
    cut = text([*host, *(one for one in whole if one["cat"] == "kernel")])
    cut = cut[: cut.index(b'"cat": "kernel"') - 12]
    verdict = ask(cut, "analyze", "--salvage").data["verdict"]
    assert verdict["headline"]["template"].startswith("in what is left of the file, host-bound")
    assert verdict["evidence"][0]["template"].startswith("the file stops early")
    assert verdict["evidence"][1]["values"] == ["no device work is in what is left of the file"]
    device = ask(cut, "doctor", "--salvage").check("E101")
    assert (device["state"], device["seen"]) == ("missing", "no device activities before the file stops")
    assert ask(cut, "doctor", "--salvage").check("E113")["seen"].endswith("; the file stops early")


def test_b034_what_another_writer_overwrote_is_lost_and_its_share_told(ask: Ask) -> None:
    lines = [json.dumps({"ph": "X", **event}).encode() for event in loop(200)]
    whole = b"[\n" + b",\n".join(lines) + b"\n]"
    other = b'"cat": "Dev    {' * 256  # 4 KiB
    begin = len(whole) // 2
    mixed = whole[:begin] + other + whole[begin + len(other) :]
    hit = sum(line not in mixed for line in lines)
    found = raw(mixed)
    assert 800 - hit <= len(found.events) <= 800
    answer = ask(mixed, "doctor")
    assert answer.code == 0
    # the torn events at both ends may be lost with what was overwritten
    torn = 2 * max(map(len, lines))
    assert 0 < answer.data["lost_share"] * len(mixed) <= len(other) + torn
    assert answer.data["lost_share"] > 0.9 * len(other) / len(mixed)


def test_b035_ranks_that_stop_early_have_fewer_steps(ask: Ask) -> None:
    """One file is read at a time: each answer says how many steps it stands for."""
    for rank, count in ((0, 25), (1, 4)):
        answer = ask(loop(count), distributedInfo={"rank": rank, "world_size": 2})
        assert (answer.data["trace"]["rank"], len(answer.data["steps"])) == (rank, count)


@pytest.mark.parametrize(
    ("before", "code", "called"),
    [
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "SC305", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "SC303", "Git LFS pointer"),
    ],
)
def test_b037_what_is_no_trace_is_called_by_what_it_is(
    ask: Ask, before: bytes, code: str, called: str
) -> None:
    for content in (before, before + TRACE):
        answer = ask(content)
        assert answer.code == 3
        assert answer.err.startswith(f"error {code}")
        assert called in answer.err


def test_b038_members_one_after_another_are_one_text() -> None:
    third = len(TRACE) // 3
    members = [gzip.compress(TRACE[at : at + third]) for at in range(0, len(TRACE), third)]
    found = raw(b"".join(members))
    assert (len(found.events), found.meta.damage) == (40, ())


def test_b038_of_members_mixed_up_the_events_before_the_damage_are_kept(ask: Ask) -> None:
    half = TRACE[: len(TRACE) // 2]
    first, second = gzip.compress(half), gzip.compress(TRACE)
    mixed = first + second[:30] + first[:200] + second[230:]
    kept = sum(json.dumps({"ph": "X", **event}).encode() in half for event in loop(10))
    found = raw(mixed, salvage=True)
    assert len(found.events) >= kept
    assert {one.harm for one in found.meta.damage} & {Harm.PACK_BAD, Harm.PACK_CUT, Harm.PACK_AFTER}
    answer = ask(mixed, "doctor", "--salvage")
    assert answer.code == 0
    assert {"pack_bad", "pack_cut", "pack_after"} & {one["harm"] for one in answer.data["damage"]}
    assert answer.data["lost_share"] > 0


def test_b040_a_gzip_file_without_content_is_an_empty_trace(ask: Ask) -> None:
    empty = gzip.compress(b"", mtime=0)
    assert len(empty) == 20
    for content in (empty, empty[:10], b""):
        answer = ask(content, name="trace.json.gz")
        assert (answer.code, "Traceback" in answer.err) == (3, False)
        assert answer.err.startswith("error SC302")


NAMED = ("a.json", "a.json.gz", "a.json.zst", "a.JSON.GZ", "a", "a.bin")


@pytest.mark.parametrize("name", NAMED)
def test_b041_content_tells_the_compression_under_any_name(ask: Ask, name: str) -> None:
    for packed in (TRACE, gzip.compress(TRACE), zstd.compress(TRACE)):
        answer = ask(packed, name=name)
        assert (answer.code, answer.data["elapsed_ns"], answer.data["trace"]["events"]) == (0, 100_000, 40)


@pytest.mark.parametrize("name", NAMED)
def test_b043_no_file_is_refused_for_its_ending(ask: Ask, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(TRACE))
    assert ask(folder).data["trace"]["events"] == 40


def test_b043_a_file_of_the_right_ending_and_the_wrong_content_is_refused() -> None:
    with pytest.raises(InputError):
        raw(gzip.compress(b"no trace"))
    assert len(names(raw(gzip.compress(TRACE)))) == 40
