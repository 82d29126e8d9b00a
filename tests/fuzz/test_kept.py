"""Every input that once broke something stays, and breaks nothing any more."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from fuzzing.targets import TARGETS

from tests.fuzz.fuzzed import KEPT, fuzz


@pytest.mark.parametrize("name", sorted({path.name.partition("-")[0] for path in KEPT}))
def test_kept_inputs_of_a_target_are_answered_or_refused(name: str) -> None:
    paths = [str(path) for path in KEPT if path.name.startswith(f"{name}-")]
    code, said = fuzz("--replay", *paths)
    assert code == 0, said
    assert said.count(": sound\n") == len(paths), said


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_kept_input_is_what_its_name_says(path: Path) -> None:
    """A kept input that somebody edits would no longer be the one that broke something."""
    name, _, digest = path.name.partition("-")
    assert name in TARGETS
    assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(digest)
    assert len(digest) == 12
