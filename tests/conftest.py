"""The suite gives the same answers on every run: hypothesis derives its examples from the test, not from chance."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("stepcrit", derandomize=True, deadline=None)
settings.load_profile("stepcrit")
