"""stepcrit.toml and the cache may be anybody's: whatever lies there, a command ends, and says which trace it means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepcrit.cli import lookup
from stepcrit.cli.lookup import files_like, is_like, read_small
from stepcrit.cli.main import run
from stepcrit.errors import UsageError
from stepcrit.ingest.config import LARGEST_CONFIG
from tests.security.hostile_trace import hostile_trace

ASK = ("whatif", "--shrink", "aten::copy_=0.5")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a trace, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("t.json").write_bytes(hostile_trace().content)
    return tmp_path / "here"


# --- stepcrit.toml ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (b"#" * (LARGEST_CONFIG + 1), "larger than 1048576 bytes"),
        (b"a" * (1 << 21) + b" = 1", "larger than 1048576 bytes"),
        (b".".join([b"a"] * 60_000) + b" = 1", "more than 200 dots"),
        (b'"\xc2\x85".' * 150 + b'"\xc2\x85".' * 150 + b"a = 1", "more than 200 dots"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"{a = " * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 100_000, "4300"),
        (b"a = '\xff'", "utf-8"),
        (b"a = '\x00'", "cannot be read"),
        (b"a = 1\na = 2", "cannot be read"),
    ],
)
def test_a_configuration_beyond_the_limits_is_wrong_use_and_the_limit_named(
    toml: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stepcrit.toml").write_bytes(toml)
    assert run(list(ASK)) == 2
    err = capsys.readouterr().err
    assert says in err
    assert "stepcrit.toml" in err
    assert len(err) < 1000


def test_a_configuration_of_the_largest_size_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    said = b"[check]\ntraces = 't.json'\n"
    Path("stepcrit.toml").write_bytes(said + b"#" * (LARGEST_CONFIG - len(said)))
    assert run(list(ASK)) == 0
    assert "t.json (stepcrit.toml)" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "pipe behind a link"])
def test_a_configuration_that_is_no_file_is_never_waited_for(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path("stepcrit.toml")
    if kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo("pipe" if "link" in kind else path)
        if "link" in kind:
            path.symlink_to("pipe")
    assert run(list(ASK)) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["plugin = 'os.system'\n[check]", "[check]\ncommand = 'rm t.json'"])
def test_keys_that_nobody_knows_are_refused_and_do_nothing(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stepcrit.toml").write_text(f"{key}\ntraces = 't.json'\n", "utf-8")
    assert run(list(ASK)) == 2
    assert "error SC201: unknown key" in capsys.readouterr().err
    assert Path("t.json").exists()


# --- globs -----------------------------------------------------------------------------------


@pytest.fixture
def branches() -> None:
    """a/1.gz, a/b/2.gz, a/.hidden/3.gz, and a link that leads back up."""
    for name in ("a/1.gz", "a/b/2.gz", "a/.hidden/3.gz", "a/b/other.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("a/b/up").symlink_to("..")


@pytest.mark.usefixtures("branches")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a/*.gz", ["a/1.gz"]),
        ("./a//*.gz", ["a/1.gz"]),
        ("a/1.gz", ["a/1.gz"]),
        ("*/b/?.gz", ["a/b/2.gz"]),
        ("a/**/*.gz", ["a/1.gz", "a/b/2.gz"]),
        ("**/[12].gz", ["a/1.gz", "a/b/2.gz"]),
        ("a/**", ["a/1.gz", "a/b/2.gz", "a/b/other.txt"]),
        ("a/.h*/*", ["a/.hidden/3.gz"]),
        ("a/b/up/*.gz", ["a/b/up/1.gz"]),
        ("a/b", []),
        ("A/*.gz", []),
        ("a/\0", []),
        ("x" * 300 + "/*", []),
    ],
)
def test_a_glob_finds_the_files_it_means(pattern: str, found: list[str]) -> None:
    assert files_like(pattern, 10) == found


@pytest.mark.usefixtures("branches")
def test_an_absolute_glob_is_followed_from_the_root(here: Path) -> None:
    assert files_like(f"{here}/a/*.gz", 10) == [f"{here}/a/1.gz"]


@pytest.mark.usefixtures("branches")
def test_of_many_only_so_many_are_looked_for() -> None:
    assert len(files_like("a/**/*", 2)) == 2


@pytest.mark.usefixtures("branches")
@pytest.mark.parametrize(
    "pattern", ["**/**/**/**/nosuch", "a/b/" + "up/*/" * 40 + "nosuch", "*/" * 90 + "nosuch"]
)
def test_a_search_without_end_ends(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "ENTRIES", 1000)
    Path("a/again").symlink_to(".")
    Path("a/b/again").symlink_to(".")
    Path("again").symlink_to(".")
    for i in range(20):
        Path(f"d{i}/e").mkdir(parents=True)
    try:
        assert files_like(pattern, 10) == []
    except UsageError as error:
        assert "1000 files and folders" in error.what  # noqa: PT017 - either end will do


def test_a_search_that_goes_on_too_long_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lookup, "ENTRIES", 5)
    for i in range(10):
        Path(f"f{i}").touch()
    Path("stepcrit.toml").write_text("[check]\ntraces = '*.nosuch'\n", encoding="utf-8")
    assert run(list(ASK)) == 2
    assert "'*.nosuch' is not found among 5 files and folders" in capsys.readouterr().err


def test_a_path_of_a_thousand_folders_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="more than 100 folders"):
        files_like("a/../" * 5000 + "*", 10)


# --- the last trace --------------------------------------------------------------------------


def remembered(here: Path) -> Path:
    """The cache file, after one run."""
    assert run(["analyze", "t.json"]) == 0
    return here.parent / "cache" / "stepcrit" / "last-trace"


def test_any_flipped_byte_of_the_cache_is_harmless(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = remembered(here)
    whole = file.read_bytes()
    capsys.readouterr()
    for i in range(len(whole)):
        flip = (0x01, 0x80, whole[i])[i % 3]
        file.write_bytes(whole[:i] + bytes([whole[i] ^ flip]) + whole[i + 1 :])
        code = run(list(ASK))
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")  # no such trace: it is never guessed which was meant
        assert "no longer there" in err or "no trace given" in err


@pytest.mark.parametrize(
    "junk",
    [b"", b"\xff\xfe", b"\0" * 100, b"t.json", b"./t.json", b"/" + b"a" * 5000, b"a\nb", b"x" * (1 << 20)],
)
def test_what_we_did_not_write_means_no_trace(
    here: Path, junk: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = remembered(here)
    file.write_bytes(junk)
    capsys.readouterr()
    assert run(list(ASK)) == 2
    assert "no trace given" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "dangling", "device"])
def test_a_cache_that_is_no_file_of_ours_is_neither_read_nor_written_through(
    here: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = remembered(here)
    file.unlink()
    other = here / "other"
    other.write_text(str(here / "t.json"), encoding="utf-8")
    kept = other.read_bytes()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to({"link": other, "dangling": here / "nowhere", "device": "/dev/zero"}[kind])
    capsys.readouterr()
    assert run(list(ASK)) == 2
    assert "no trace given" in capsys.readouterr().err
    assert run(["analyze", "t.json"]) == 0
    assert other.read_bytes() == kept
    assert not (here / "nowhere").exists()
    assert {path.name for path in file.parent.iterdir()} == {"last-trace"}


def test_a_path_that_is_no_text_is_remembered_and_leaves_no_draft(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"\xff\x80.json")
    Path("t.json").rename(name)
    assert run(["analyze", name]) == 0
    capsys.readouterr()
    assert run(list(ASK)) == 0
    assert r"\u{dcff}\u{dc80}.json (the last one analyzed)" in capsys.readouterr().err
    assert [path.name for path in (here.parent / "cache" / "stepcrit").iterdir()] == ["last-trace"]


@pytest.mark.parametrize("size", [0, 1, 10])
def test_a_small_file_is_read_whole_or_not_at_all(size: int) -> None:
    Path("f").write_bytes(b"x" * size)
    assert read_small("f", size) == b"x" * size
    if size:
        with pytest.raises(OSError, match=f"larger than {size - 1} bytes"):
            read_small("f", size - 1)


# --- names instead of files --------------------------------------------------------------------

PARTS = st.lists(
    st.sampled_from(["a", "b", "ab", ".a", "*", "**", "a*", "?", "[ab]", ".*", "."]), min_size=1, max_size=4
)
TREE = ("a", "ab", "b/a", "b/ab", "b/.a", "b/c/a", "b/c/ab", ".a/b", ".a/.a", "b/.c/a", "b/c/d/a")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PARTS)
def test_a_name_is_like_a_pattern_if_such_a_file_would_be_found(parts: list[str]) -> None:
    for name in TREE:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    pattern = "/".join(parts)
    Path("t.json").unlink(missing_ok=True)
    assert [name for name in sorted(TREE) if is_like(name, pattern)] == [
        os.path.normpath(name) for name in files_like(pattern, 100)
    ]


def test_a_name_with_very_many_folders_is_judged_at_once() -> None:
    assert not is_like("/".join(["a"] * 50_000), "/".join(["**"] * 99 + ["b"]))
    assert not is_like("a/" * 50_000 + "a", "**/a/" * 45 + "b")
