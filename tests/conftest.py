"""The suite gives the same answers on every run: hypothesis derives its examples from the test, not from chance."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

# The last trace analyzed is remembered in the user's cache folder: tests have one of their own.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="stepcrit-tests-")

settings.register_profile("stepcrit", derandomize=True, deadline=None)
settings.load_profile("stepcrit")
