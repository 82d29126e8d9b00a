"""Arguments of an event as their meaning: writers quote the same value once, twice or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stepcrit.model.arrays import NONE

LARGEST = 2**62
"""What is larger is no count, no id and no size: and products of it would fit no column."""

_WHOLE = re.compile(r"-?[0-9]{1,19}\Z")


def words(args: Mapping[str, Any], key: str) -> str:
    r"""An argument as text, "" when it is absent.

    >>> words({"dtype": '"Float"'}, "dtype"), words({"group": 7}, "group"), words({}, "group")
    ('Float', '7', '')
    """
    value = args.get(key)
    text = "" if value is None else str(value).strip()
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text


def whole(args: Mapping[str, Any], key: str, default: int = NONE) -> int:
    """An argument as a whole number; `default` when it is absent or none.

    >>> whole({"stream": "7"}, "stream"), whole({"stream": True}, "stream"), whole({"stream": 1e30}, "stream")
    (7, -1, -1)
    """
    value = args.get(key)
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        return default
    text = words(args, key)
    number = int(text) if _WHOLE.match(text) else LARGEST
    return number if -LARGEST < number < LARGEST else default
