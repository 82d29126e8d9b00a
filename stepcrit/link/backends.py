"""Communication libraries by the names that torch.distributed gives them: in ranges, and as a job's backend."""

from __future__ import annotations

import re

DEVICE_BACKENDS = frozenset({"nccl", "rccl", "hccl", "xccl"})
"""Libraries that move device memory only."""

OTHER_BACKENDS = frozenset({"gloo", "mpi", "ucc"})
"""Libraries that serve hosts as well."""


def _range_of(backends: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"^({'|'.join(sorted(backends))}):")


DEVICE_RANGE = _range_of(DEVICE_BACKENDS)
BACKEND_RANGE = _range_of(DEVICE_BACKENDS | OTHER_BACKENDS)
"""Ranges around a collective ("nccl:all_reduce"; oneCCL writes "xccl::allreduce")."""
