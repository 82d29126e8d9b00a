"""The compiled kernels are built with the package where that is possible, and left out where it is not.

Hatchling calls this for every wheel, an editable one too. `STEPCRIT_KERNELS` means here what it means when
stepcrit runs: `plain` builds none (the wheel is one for every system), `compiled` makes it an error that
they cannot be built. Each `stepcrit/kernels/NAME.c` becomes the module `stepcrit.kernels._NAME`, against
Python's limited API: one wheel serves every Python from 3.11 on. Run as a script, it builds them in place.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("stepcrit", "kernels")
LIMITED_API = "0x030B0000"
FLAGS = () if sys.platform == "win32" else ("-O3", "-std=c11", "-fvisibility=hidden")


class KernelsHook(BuildHookInterface):  # type: ignore[misc] # hatchling is there while building only
    """What hatchling calls."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled kernels to a wheel, or put them beside their text for an editable one."""
        in_place = Path(self.root, KERNELS)
        wanted = os.environ.get("STEPCRIT_KERNELS", "")
        built = [] if wanted == "plain" else self._built(must=wanted == "compiled")
        if version == "editable":
            for stale in [*in_place.glob("*.so"), *in_place.glob("*.pyd")]:
                stale.unlink()
            for each in built:
                _put(each, in_place)
            self.finalize()
        elif built:
            build_data["pure_python"] = False
            best: str = self.build_config.builder.get_best_matching_tag()
            build_data["tag"] = f"cp311-abi3-{best.split('-', 2)[2]}"
            build_data["force_include"].update({str(each): str(KERNELS / each.name) for each in built})

    def finalize(self, *_: object) -> None:
        """Remove what was compiled: by now it is where it belongs."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def _folder(self) -> Path:
        """Where it is compiled."""
        return Path(tempfile.mkdtemp(prefix="stepcrit-kernels-"))

    def _built(self, *, must: bool) -> list[Path]:
        """The compiled modules; none where they cannot be had."""
        reason = "this Python has no limited API" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
        if not reason:
            try:
                return compile_kernels(Path(self.root), FLAGS, self._folder)
            except CannotCompileError as error:
                reason = str(error)
                self.finalize()
        if must:
            raise SystemExit(f"stepcrit: the compiled kernels cannot be built: {reason}")
        self.app.display_warning(
            f"stepcrit: left out the compiled kernels, the plain ones will run: {reason}"
        )
        return []


def _put(made: Path, folder: Path) -> None:
    """Put a file in its place at once: written over, it would end every process that has it loaded."""
    beside = shutil.copy2(made, folder / f".{made.name}")
    Path(beside).replace(folder / made.name)


class CannotCompileError(Exception):
    """There is no compiler, or it fails."""


def compile_kernels(root: Path, flags: tuple[str, ...], into: Path) -> list[Path]:
    """Compile every kernel.

    Args:
        root: the folder that holds the package.
        flags: for compiler and linker, besides what this Python was built with.
        into: where to put the modules.

    Returns:
        The modules' files.

    Raises:
        CannotCompileError: there is no compiler, or it fails.
    """
    # setuptools knows the compiler of every system
    from setuptools import Distribution, Extension  # noqa: PLC0415 - only what compiles needs it
    from setuptools.errors import BaseError, CCompilerError  # noqa: PLC0415 - the same

    modules = [
        Extension(
            f"stepcrit.kernels._{each.stem}",
            [each.relative_to(root).as_posix()],
            define_macros=[("Py_LIMITED_API", LIMITED_API)],
            extra_compile_args=list(flags),
            extra_link_args=[flag for flag in flags if flag.startswith("-fsanitize")],
            py_limited_api=True,
        )
        for each in sorted((root / KERNELS).glob("*.c"))
    ]
    command = Distribution({"name": "stepcrit", "ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(into), str(into / "objects")
    here = Path.cwd()
    os.chdir(root)
    try:
        command.ensure_finalized()
        command.run()
    except (BaseError, CCompilerError, OSError) as error:
        raise CannotCompileError(str(error)) from error
    finally:
        os.chdir(here)
    return [into / name for name in command.get_outputs()]


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="stepcrit-kernels-") as folder:
        for made in compile_kernels(root, FLAGS, Path(folder)):
            _put(made, root / KERNELS)
            print(f"{KERNELS / made.name}: built")
