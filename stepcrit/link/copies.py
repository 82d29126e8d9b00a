"""From where to where a copy goes, as the profiler writes it into the copy's name."""

from __future__ import annotations

import re

_ENDS = re.compile(r"^Memcpy \w+ \((?P<source>[\w ]+) -> (?P<target>[\w ]+)\)$")


def ends_of(name: str) -> tuple[str, str]:
    """The kinds of memory at both ends, "" where the name does not tell them.

    "Host" (ROCm) may be pinned or not.

    >>> ends_of("Memcpy DtoH (Device -> Pageable)"), ends_of("dma_request")
    (('Device', 'Pageable'), ('', ''))
    """
    found = _ENDS.match(name)
    return (found["source"], found["target"]) if found else ("", "")
