"""Writing: whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepcrit.errors import OutputError
from stepcrit.report.write import write_output


def test_a_file_is_written_and_nothing_else(tmp_path: Path) -> None:
    write_output(b"a\n", tmp_path / "out.txt")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"out.txt": b"a\n"}


def test_an_old_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_bytes(b"old")
    out.chmod(0o640)
    write_output(b"new", str(out))
    assert out.read_bytes() == b"new"
    assert out.stat().st_mode & 0o777 == 0o640


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.txt"
    out.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError) as caught:
        write_output(b"new", out)
    assert caught.value.where == str(out)
    assert caught.value.what == "cannot write 3 bytes: No space left on device"
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"out.txt": b"old"}


@pytest.mark.parametrize("where", ["missing/out.txt", ".", "x" * 300])
def test_a_path_that_cannot_be_written_is_an_output_error(tmp_path: Path, where: str) -> None:
    with pytest.raises(OutputError):
        write_output(b"new", tmp_path / where)


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_output(b"gone", os.devnull)
    assert not Path(os.devnull).is_file()


def test_a_symbolic_link_is_replaced_and_what_it_names_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"real")
    (tmp_path / "link").symlink_to("real")
    write_output(b"new", tmp_path / "link")
    assert (tmp_path / "real").read_bytes() == b"real"
    assert (tmp_path / "link").read_bytes() == b"new"
