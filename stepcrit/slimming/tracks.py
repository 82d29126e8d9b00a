"""Numbers of processes and threads become small fixed ones, in the order of the old numbers' texts.

Lanes are told apart and put in order by these texts, so that no answer changes. Devices keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from stepcrit.slimming.tokens import Tokens
from stepcrit.slimming.vocabulary import TRACK_WORD

_OS_NUMBER = re.compile(r"-?\d+")
SMALLEST = 100
"""A process below it is a container's own, or a device: its number tells nothing."""

_STRIDE = 1000


class Tracks(Struct, frozen=True):
    """New numbers: of processes by pid, of threads by pid and tid."""

    pids: Mapping[str, int]
    tids: Mapping[tuple[str, str], int]
    tokens: Tokens

    def pid(self, pid: str) -> int | str:
        """The new number of a process, or its pid."""
        return self.pids[pid] if pid in self.pids else self._word(pid)

    def tid(self, pid: str, tid: str) -> int | str:
        """The new number of a thread, or its tid; threads without any row have none of their own."""
        if pid in self.pids:
            return self.tids.get((pid, tid), self.pids[pid])
        return self._word(tid)

    def _word(self, text: str) -> int | str:
        return text if TRACK_WORD.fullmatch(text) else self.tokens.of(text, "name of a track")


def number_tracks(host: Iterable[tuple[str, str]], elsewhere: Iterable[str], tokens: Tokens) -> Tracks:
    """Number the processes and threads of a trace.

    Args:
        host: (pid, tid) of every host thread.
        elsewhere: pids of devices and of other rows, which keep theirs.
        tokens: for tracks that are called by words.
    """
    fixed = set(elsewhere)
    threads: dict[str, set[str]] = {}
    for pid, tid in host:
        if pid not in fixed and _OS_NUMBER.fullmatch(pid) and abs(int(pid)) >= SMALLEST:
            threads.setdefault(pid, set()).add(tid)
    stride = _STRIDE
    while threads and stride <= max(map(len, threads.values())):
        stride *= 10
    # all of one length, so that the order of the numbers is the order of their texts
    first = 1 if len(threads) < 10 else 10 ** len(str(len(threads)))
    pids = {pid: stride * (first + i) for i, pid in enumerate(sorted(threads))}
    tids = {(pid, tid): pids[pid] + i for pid, own in threads.items() for i, tid in enumerate(sorted(own), 1)}
    return Tracks(pids, tids, tokens)
