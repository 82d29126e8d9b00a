"""The one place that starts a program, and that program is git, asked to read and to do nothing else.

A repository's own settings can name programs: hooks, a pager, a watcher of files, a filter, a helper for
secrets. None of them runs here, nothing is fetched, nothing is written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

from stepcrit.errors import NoGitError

SECONDS = 60.0
"""git answers within this, or it is given up."""

_KEPT = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    }
)
"""What of git's environment says where things are (as for a hook) is kept, with GIT_CONFIG_…; nothing else is."""

_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.untrackedCache=false",
    "protocol.allow=never",
    "credential.helper=",
    "log.showSignature=false",
)

_VALUES = {"": "STEPCRIT_GIT_EMPTY", "false": "STEPCRIT_GIT_FALSE"}
"""Values by the variables that hold them, for names that -c would cut."""


def git(
    folder: str, *words: str, settings: tuple[str, ...] = (), is_literal: bool = True
) -> tuple[int, bytes, str]:
    """Run one reading git command.

    Args:
        folder: where it runs.
        words: the command and its arguments; what a user typed comes after `--` or `--end-of-options`.
        settings: more `name=value` of git's configuration, for this command alone.
        is_literal: whether paths are names, not patterns; if not, each says what it is: ":(glob)".

    Returns:
        Its exit code, its output, and what it said on stderr.

    Raises:
        NoGitError: it is not installed, cannot be started, or takes too long.
    """
    command = [_program(), "--no-pager", "--no-replace-objects"]
    command += ["--literal-pathspecs"] if is_literal else []
    for setting in (*_SETTINGS, *settings):
        command += _set(setting)
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
            [*command, *words],
            cwd=folder,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoGitError(
            f"git {words[0]} did not answer within {SECONDS:.0f} s", do="see whether it does by hand"
        ) from error
    except (OSError, ValueError) as error:
        raise NoGitError(f"git cannot be started: {error}", do="see whether it runs by hand") from error
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip()


def _set(setting: str) -> list[str]:
    """Options that set a value; after -c git would end a name at its first sign of equality, and a filter may have one."""
    name, _, value = setting.rpartition("=")
    return [f"--config-env={name}={_VALUES[value]}"] if "=" in name else ["-c", setting]


def _program() -> str:
    """Where git is: looked up on the absolute folders of PATH alone, never in the folder one happens to be in.

    Raises:
        NoGitError: nowhere.
    """
    folders = [each for each in os.get_exec_path() if os.path.isabs(each)]  # noqa: PTH117 - a string is enough
    found = shutil.which("git", path=os.pathsep.join(folders)) if folders else None
    if found is None or not os.path.isabs(found):  # noqa: PTH117
        raise NoGitError(
            "git is not installed, or not on PATH",
            do="install it, or give a folder as the baseline: --base FOLDER",
        )
    return found


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for git: nothing in it starts a program, asks a question or writes a log."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith("GIT_CONFIG_")
    }
    return {
        **kept,
        **{variable: value for value, variable in _VALUES.items()},
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
    }
