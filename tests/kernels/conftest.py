"""Comparing the two kinds of kernels is what fuzzing does: its scripts lie where their own imports look."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
