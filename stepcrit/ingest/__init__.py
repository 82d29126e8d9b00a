"""The only code that opens traces: bytes in, event columns in integer nanoseconds out."""

from stepcrit.ingest.reader import read_trace

__all__ = ["read_trace"]
