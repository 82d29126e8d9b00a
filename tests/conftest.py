"""The suite gives the same answers on every run: examples come from the test, not from chance, and nothing from the network."""

from __future__ import annotations

import os
import socket
import tempfile

import pytest
from hypothesis import settings

# The last trace analyzed is remembered in the user's cache folder: tests have one of their own.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="stepcrit-tests-")

settings.register_profile("stepcrit", derandomize=True, deadline=None)
settings.load_profile("stepcrit")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for the network fails; sockets of this machine's files are none of it."""

    def refuse(*args: object, **_: object) -> None:
        raise RuntimeError(f"a test reached for the network: {args[1:] or args}")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "gethostbyaddr", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
