"""The build takes the compiled kernels along where they can be had, and is none the worse without."""

from __future__ import annotations

import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hatchling")
pytest.importorskip("setuptools")

import build_kernels

ROOT = Path(__file__).parents[2]


class _App:
    """What shows a builder's warnings."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def display_warning(self, message: str) -> None:
        self.told.append(message)


class _Builder:
    def get_best_matching_tag(self) -> str:
        return "cp312-cp312-linux_x86_64"


class _Config:
    builder = _Builder()


def hooked(root: Path, version: str) -> tuple[dict[str, Any], list[str]]:
    """What the hook makes of a build, and what it warns of."""
    app, data = _App(), {"force_include": {}, "pure_python": True}
    hook = build_kernels.KernelsHook(str(root), {}, _Config(), None, str(root), "wheel", app)
    hook.initialize(version, data)
    hook.finalize(version, data, "")
    return data, app.told


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source tree with a kernel, built once before."""
    folder = tmp_path / "stepcrit" / "kernels"
    folder.mkdir(parents=True)
    (folder / "scan.c").write_text("int main;", encoding="ascii")
    (folder / "_scan.abi3.so").write_bytes(b"stale")
    return tmp_path


def compiled(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have compiling give a file."""
    made = folder / "_scan.abi3.so"
    made.parent.mkdir(exist_ok=True)
    made.write_bytes(b"fresh")
    monkeypatch.setattr(build_kernels, "compile_kernels", lambda *_: [made])
    monkeypatch.delenv("STEPCRIT_KERNELS", raising=False)


def test_a_wheel_with_kernels_is_one_for_this_system_and_every_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path
) -> None:
    compiled(monkeypatch, tmp_path / "made")
    data, told = hooked(root, "standard")
    assert (data["tag"], data["pure_python"], told) == ("cp311-abi3-linux_x86_64", False, [])
    assert list(data["force_include"].values()) == ["stepcrit/kernels/_scan.abi3.so"]


def test_an_editable_install_has_them_beside_their_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path
) -> None:
    compiled(monkeypatch, tmp_path / "made")
    data, _ = hooked(root, "editable")
    assert (root / "stepcrit" / "kernels" / "_scan.abi3.so").read_bytes() == b"fresh"
    assert data == {"force_include": {}, "pure_python": True}


@pytest.mark.parametrize("version", ["standard", "editable"])
def test_without_a_compiler_the_build_goes_on_without_them(
    monkeypatch: pytest.MonkeyPatch, root: Path, version: str
) -> None:
    monkeypatch.setenv("CC", "/bin/false")
    monkeypatch.delenv("STEPCRIT_KERNELS", raising=False)
    data, told = hooked(root, version)
    assert data == {"force_include": {}, "pure_python": True}
    assert len(told) == 1
    assert "left out the compiled kernels" in told[0]
    stale = root / "stepcrit" / "kernels" / "_scan.abi3.so"
    assert stale.exists() == (version == "standard")  # what was built from older text must not stay


def test_asking_for_plain_kernels_compiles_nothing(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setattr(build_kernels, "compile_kernels", lambda *_: pytest.fail("compiled"))
    monkeypatch.setenv("STEPCRIT_KERNELS", "plain")
    assert hooked(root, "standard") == ({"force_include": {}, "pure_python": True}, [])


def test_asking_for_compiled_kernels_without_a_compiler_fails(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setenv("CC", "/bin/false")
    monkeypatch.setenv("STEPCRIT_KERNELS", "compiled")
    with pytest.raises(SystemExit, match="cannot be built"):
        hooked(root, "standard")


def test_a_python_without_a_limited_api_gets_the_plain_ones(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.delenv("STEPCRIT_KERNELS", raising=False)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED")
    data, told = hooked(root, "standard")
    assert data["pure_python"]
    assert "no limited API" in told[0]


def test_the_build_is_told_where_its_hook_lies_and_asks_for_no_headers() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = told["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert (ROOT / wheel["hooks"]["custom"]["path"]).samefile(build_kernels.__file__)
    assert {"*.c", "*.h"} <= set(wheel["exclude"])
    assert {word.split(">")[0] for word in told["build-system"]["requires"]} == {"hatchling", "setuptools"}
    assert told["tool"]["cibuildwheel"]["environment"] == {"STEPCRIT_KERNELS": "compiled"}
