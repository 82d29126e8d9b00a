"""What GitHub's runner is told beside the answer: notes for a change, and the summary of the job.

Nobody asked for them, so what keeps them from being written is told, and changes no exit code.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stepcrit.cli.output import annotate, tell
from stepcrit.cli.targets import check_target
from stepcrit.errors import UsageError

if TYPE_CHECKING:
    from stepcrit.model.checked import Checked

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of the summary."""


def tell_runner(checked: Checked, *read: str) -> None:
    """Notes on stderr, which the runner reads like stdout, and a summary in the file that the environment names.

    Args:
        checked: what was found.
        read: files that were read; the summary is none of them.
    """
    from stepcrit.report.github import annotated, is_runner  # noqa: PLC0415 - only a runner needs it

    if not is_runner(os.environ):
        return
    annotate(annotated(checked))
    path = os.environ.get(SUMMARY)
    if path:
        _summarize(checked, path, read)


def _summarize(checked: Checked, path: str, read: tuple[str, ...]) -> None:
    """Append; whatever other commands of the same step wrote stays."""
    from stepcrit.report.drafts import append  # noqa: PLC0415
    from stepcrit.report.github import SUMMARY_BYTES, summary  # noqa: PLC0415

    try:
        check_target(path, "", *read)
        is_room = append(summary(checked).encode(), path, SUMMARY_BYTES)
    except UsageError as error:
        tell(f"no summary for the job: {error.what}: {path}\n")
    except OSError as error:
        tell(f"no summary for the job: {error.strerror or error}: {path}\n")
    else:
        if not is_room:
            tell(f"no summary for the job: {path} would pass {SUMMARY_BYTES} bytes\n")
