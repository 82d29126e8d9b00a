"""What is wrong with a text that is no JSON: what, at which byte, and what to do about it."""

from __future__ import annotations

import re

import msgspec

from stepcrit.errors import BrokenInputError
from stepcrit.ingest.window import Window

STOPS = "The JSON stops before its end"

_BYTE = re.compile(r"\(byte (\d+)\)")


class Refusals:
    """Makes the errors about a window's text."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def broken(self, what: str, position: int, do: str = "") -> BrokenInputError:
        """An error about a position of the window."""
        place = self._window.place(position)
        where = f"byte {place.byte} of the JSON text, line {place.line}"
        return BrokenInputError(
            f"{what}.", where=f"{where}: {place.excerpt}" if place.excerpt else where, do=do
        )

    def truncated(self) -> BrokenInputError:
        """An error about text that stops."""
        advice = "The trace was cut off while it was written or copied: record it or copy it again."
        return self.broken(STOPS, len(self._window.text), advice)

    def misread(self, lead: bytes) -> BrokenInputError | None:
        """The error in text that seems to stop only because a stray quote swaps inside and outside."""
        window = self._window
        text = lead + window.text[window.at :]
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            found = _BYTE.search(str(error))
            # At the very end it is only a number that the end cuts.
            if found and int(found[1]) < len(text):
                return self.malformed(error, text[len(lead) :], window.at, lead=len(lead))
        except RecursionError:
            pass
        return None

    def malformed(
        self, error: msgspec.DecodeError, text: bytes, start: int, *, lead: int = 0
    ) -> BrokenInputError:
        """An error about text that is not JSON, with advice for the ways traces are known to break."""
        message = str(error).removeprefix("JSON is malformed: ")
        if "UTF-8" in message:
            return self.not_utf8(text, start)
        found = _BYTE.search(message)
        if not found:
            # The decoder says "truncated" of a bare word that the end cuts, and of half a surrogate pair.
            if start + len(text) >= len(self._window.text):
                return self.truncated()
            return self.broken("The JSON is malformed: half a surrogate pair", start)
        inside = int(found[1]) - lead
        around = text[max(0, inside - 1) : inside + 8]
        what = f"The JSON is malformed: {_BYTE.sub('', message).strip()}"
        return self.broken(what, start + inside, _advice(message, around))

    def not_utf8(self, text: bytes, start: int) -> BrokenInputError:
        """An error about bytes in another encoding."""
        what = "The JSON is malformed: it is not UTF-8"
        return self.broken(what, start + _first_bad_utf8(text), "Re-encode the file as UTF-8.")


def _first_bad_utf8(text: bytes) -> int:
    """Where `text` stops being UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _advice(message: str, around: bytes) -> str:
    """What to do about malformed JSON of a known make."""
    if "escape" in message:
        return (
            "The file has unescaped Windows backslashes in its names (PyTorch 1.12 and 1.13 on Windows write them): "
            "record with a newer PyTorch, or without with_stack."
        )
    if re.search(rb"(?i)\b(nan|inf)", around):
        return "The file holds NaN or Infinity, which JSON has not: replace them by null."
    return "Check that the file is complete and was not edited by hand."
