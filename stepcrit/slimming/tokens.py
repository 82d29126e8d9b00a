"""Words that tell where a trace was recorded give way to tokens: equal words to equal tokens, and no way back.

A token is a keyed hash. The key comes from a file of the user's (then tokens are equal across ranks and runs),
or from the trace's own bytes: nobody can guess words by trying who has not got the trace itself. It is stored
nowhere. A token stays what it is, so that slimming twice is slimming once.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter

TOKEN = re.compile(r"anon-[0-9a-f]{12}")
_DIGEST_BYTES = 6
_PRODUCTS = b"stepcrit products"
_KEY_BYTES = 64  # the most that blake2b takes


class Tokens:
    """Makes tokens, and counts what for.

    Attributes:
        replaced: distinct words that were replaced, by what they are ("path", "host name").
    """

    def __init__(self, key: bytes) -> None:
        self.replaced: Counter[str] = Counter()
        self._key = hashlib.blake2b(key, digest_size=_KEY_BYTES).digest()
        self._known: dict[tuple[str, bytes], str] = {}

    def of(self, word: str, what: str) -> str:
        """The token of a word, or the word itself where it is empty or a token."""
        return self._of(word, what, self._key)

    def of_product(self, word: str, what: str) -> str:
        """The token of a word that is compared over traces and tells of nobody: its key is everybody's."""
        return self._of(word, what, _PRODUCTS)

    def _of(self, word: str, what: str, key: bytes) -> str:
        if not word or TOKEN.fullmatch(word):
            return word
        if (word, key) not in self._known:
            digest = hashlib.blake2b(
                word.encode("utf-8", "surrogatepass"), key=key, digest_size=_DIGEST_BYTES
            )
            self._known[word, key] = f"anon-{digest.hexdigest()}"
            self.replaced[what] += 1
        return self._known[word, key]
