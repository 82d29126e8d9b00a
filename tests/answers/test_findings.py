"""What a reader is warned of."""

from __future__ import annotations

import pytest

from stepcrit.answers.findings import findings
from tests.answers.drawn import call, op, view_of, words, work


@pytest.mark.parametrize(("b", "share"), [(90, None), (89, 0.11)])
def test_timing_alone_is_worth_a_warning_above_a_tenth_of_the_path(b: int, share: float | None) -> None:
    """No sync record says what `b` waited for: that it is `a` is known by timing, and `b` is entered so."""
    # host  |op la 2..4   wait 5..6   lb 7..8|
    # s7             [a 4..............b]
    # s20                               [b ..100]     100 - b of 100
    chrome = [
        op("op", 0, 9), call("cudaLaunchKernel", (2, 4), 1), call("cudaStreamWaitEvent", (5, 6), 2),
        call("cudaLaunchKernel", (7, 8), 3), work("a", (4, b), 1), work("b", (b, 100), 3, stream=20),
    ]  # fmt: skip
    said = [words(found.what) for found in findings(view_of(chrome)) if found.code == "G212"]
    what = "{} of the path is entered through timing alone; record with enable_cuda_sync_events=True to know"
    assert said == ([what.format(share)] if share else [])
