"""Names of processes and threads: what every trace says stays, a command's or a host's own name goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepcrit.slimming import vocabulary as known
from stepcrit.slimming.tokens import Tokens
from stepcrit.slimming.tracks import Tracks


def label_args(
    name: str, track: tuple[str, str], args: Mapping[str, Any], tracks: Tracks, tokens: Tokens
) -> dict[str, Any]:
    """The arguments of a metadata event that stay.

    Args:
        name: the event's name, one of vocabulary.METADATA.
        track: its pid and tid.
        args: its arguments.
        tracks: the new numbers of processes and threads.
        tokens: for what tells of a place.
    """
    if name == "process_name":
        return {"name": _process(args.get("name"), tokens)}
    if name == "process_labels":
        return {
            "labels": _known_or_token(args.get("labels"), known.PROCESS_LABEL, "label of a process", tokens)
        }
    if name == "thread_name":
        return {"name": _thread(args.get("name"), track[0], tracks, tokens)}
    own, new = (
        (track[0], tracks.pid(track[0])) if name == "process_sort_index" else (track[1], tracks.tid(*track))
    )
    return _order(args.get("sort_index"), own, new)


def _order(order: object, own: str, new: int | str) -> dict[str, Any]:
    """The place in a list: mostly the number of the process or the thread itself, else one that Kineto gives."""
    if not isinstance(order, int):
        return {}
    if str(order) == own and isinstance(new, int):
        return {"sort_index": new}
    is_kinetos = str(order) == own or abs(order) < known.FEW_TRACKS or order >= known.FIRST_PLACE
    return {"sort_index": order if is_kinetos else 0}


def _process(name: object, tokens: Tokens) -> str:
    """A process is called after its command."""
    return _known_or_token(name, known.PROCESS_NAME, "process name", tokens)


def _thread(name: object, pid: str, tracks: Tracks, tokens: Tokens) -> str:
    """A name like "thread 4100 (pt_autograd_0)": with the new number, and a word that torch gives threads."""
    found = known.THREAD_NAME.fullmatch(name) if isinstance(name, str) else None
    if not found:
        return _known_or_token(name, known.TRACK_NAME, "thread name", tokens)
    number = tracks.tid(pid, found[2])
    if found[3] is None:
        return f"{found[1]} {number}"
    return f"{found[1]} {number} ({_known_or_token(found[3], known.THREAD_WORD, 'thread name', tokens)})"


def _known_or_token(name: object, pattern: Any, what: str, tokens: Tokens) -> str:
    if not isinstance(name, str):
        return ""
    return name if pattern.fullmatch(name) else tokens.of(name, what)
