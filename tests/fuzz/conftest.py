"""Scripts are run, not installed: put their folder where their own imports look."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
