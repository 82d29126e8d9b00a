"""`stepcrit explain`: the texts that define every term and number on the screen.

One file in `topic_texts` is one topic: a line `# Title`, a line `aliases: a, b, c` (terms, headings, JSON
keys and class labels that lead here), then the text. A line `## CODE Title` opens an entry: the
explanation of one code, shown when that code is asked for.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from importlib import resources

from msgspec import Struct

from stepcrit.errors import InternalError, UsageError, quoted

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a step and its time", ("elapsed", "boundary", "steps", "steady", "microbatches", "summed")),
    (
        "the critical path",
        (
            "critical-path",
            "graph",
            "classes",
            "device-classes",
            "host-classes",
            "own-classes",
            "gaps",
            "untracked",
        ),
    ),
    ("the tables of `critical`", ("runs", "runner-up", "around")),
    (
        "what would make it shorter",
        (
            "ranking",
            "by",
            "saving",
            "whatif",
            "models",
            "interventions",
            "target",
            "inject",
            "prediction",
            "slack",
            "drag",
            "verdict",
            "next",
        ),
    ),
    (
        "before and after",
        (
            "diff",
            "matched-work",
            "ratio",
            "path-keys",
            "beside",
            "other-kernels",
            "diff-verdict",
            "judgement",
        ),
    ),
    ("the device", ("overlap", "exposed-comm", "idle", "queue")),
    ("how sure it is", ("claims", "evidence", "trust", "cross-step", "strict", "floors", "device-only")),
    ("the recording", ("doctor", "recording", "slim", "salvage", "limits", "plausibility")),
    ("the check of committed traces", ("check", "budgets", "metrics", "check-baseline", "init", "ci")),
    ("numbers without a trace", ("calc",)),
    ("output", ("numbers", "formats", "json", "schemas", "exit-codes", "plain-kernels", "performance")),
    ("codes", ("error-codes", "doctor-codes", "finding-codes", "check-codes")),
)
"""Every topic, in the order in which the list shows them."""

NEAR = 5
FULL = 72
"""Where a line and the next line's first word pass this, the line ended for want of room, not on purpose."""
_COLUMN = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")
_UNSAID = re.compile(r"[\W_]+")
_ENTRY = re.compile(r"^## (?P<code>\S+) (?P<title>.+)$", re.MULTILINE)


class Entry(Struct, frozen=True):
    """The explanation of one code."""

    code: str
    title: str
    text: str


class Topic(Struct, frozen=True):
    """One topic: its id is the name of its file."""

    id: str
    title: str
    aliases: tuple[str, ...]
    text: str
    entries: tuple[Entry, ...]


@cache
def all_topics() -> tuple[Topic, ...]:
    """Every topic, by group.

    Raises:
        InternalError: a text is missing or has no front lines (a bug).
    """
    folder = resources.files(__package__) / "topic_texts"
    ids = [one for _, group in GROUPS for one in group]
    return tuple(parse_topic(one, (folder / f"{one}.md").read_text(encoding="utf-8")) for one in ids)


def parse_topic(topic_id: str, text: str) -> Topic:
    """A topic as its file has it.

    Raises:
        InternalError: the two front lines are not there.
    """
    title, _, rest = text.partition("\n")
    aliases, _, body = rest.partition("\n")
    if not title.startswith("# ") or not aliases.startswith("aliases:"):
        raise InternalError("a topic does not begin with `# Title` and `aliases: …`", where=topic_id)
    opening, *parts = _ENTRY.split(body)
    entries = tuple(
        Entry(code, name.strip(), words.strip("\n"))
        for code, name, words in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    )
    names = tuple(a.strip() for a in aliases.removeprefix("aliases:").split(",") if a.strip())
    return Topic(topic_id, title.removeprefix("# ").strip(), names, opening.strip("\n"), entries)


def show(topic: str) -> str:
    """What a term, a heading, a key or a code means.

    Args:
        topic: its name in any case; where no name is spelled like it, blanks, hyphens and brackets
            do not matter.

    Raises:
        UsageError: there is no such topic; the error offers near ones.
    """
    names, keys = _index()
    found = names.get(_spelled(topic)) or keys.get(key_of(topic))
    if found is None:
        raise UsageError(f"no topic {quoted(topic)}", do=_near(topic))
    words, where = found
    return _entry_text(words, where) if isinstance(words, Entry) else _topic_text(words)


def topic_of(name: str) -> Topic | None:
    """The topic that a term, a heading or a key leads to; None where there is none."""
    names, keys = _index()
    found = names.get(_spelled(name)) or keys.get(key_of(name))
    return found[0] if found and isinstance(found[0], Topic) else None


def topic_list() -> str:
    """Every topic with its title, by group."""
    titles = {one.id: one.title for one in all_topics()}
    width = max(map(len, titles)) + 2
    lines = ["stepcrit explain TOPIC: one of these, a word on the screen, a key, or a code"]
    for heading, ids in GROUPS:
        lines += ["", heading, *(f"  {one:<{width}}{titles[one]}" for one in ids)]
    return "\n".join(lines)


def fitted(text: str, width: int) -> str:
    r"""A text in so many columns: what is too wide is wrapped anew, below the column in which it begins.

    >>> print(fitted("all  nothing is too wide here\nnone  but here", 20))
    all  nothing is too
         wide here
    none  but here
    """
    items: list[list[str]] = []
    for line in text.splitlines():
        if items and _continues(items[-1], line):
            items[-1].append(line)
        else:
            items.append([line])
    return "\n".join(line for item in items for line in _refit(item, width))


def _continues(item: list[str], line: str) -> bool:
    """Whether a line goes on with a paragraph, or with the text of a table's row."""
    words = line.split(maxsplit=1)
    if not words or not item[-1] or _COLUMN.match(line) or _column(line) != _column(item[0]):
        return False
    return len(item[-1]) + 1 + len(words[0]) > FULL


def _column(line: str) -> int:
    """Where the text of a line begins: behind the name of a row, or behind blanks."""
    row = _COLUMN.match(line)
    return row.end() if row else len(line) - len(line.lstrip())


def _refit(item: list[str], width: int) -> list[str]:
    """The lines of one item, none wider than `width`."""
    if max(map(len, item)) <= width:
        return item
    hang = " " * min(_column(item[0]), width // 2)
    words = " ".join([item[0], *(line.strip() for line in item[1:])])
    return textwrap.wrap(words, width, subsequent_indent=hang, break_on_hyphens=False)


def key_of(name: str) -> str:
    """A name without what people write differently.

    >>> key_of("Critical-Path"), key_of("critical_path"), key_of("(launched outside the trace)")
    ('criticalpath', 'criticalpath', 'launchedoutsidethetrace')
    """
    return _UNSAID.sub("", name.casefold())


def _spelled(name: str) -> str:
    """A name as it is written, but for case and blanks around it."""
    return " ".join(name.casefold().split())


_Found = tuple[Topic | Entry, str]


@cache
def _index() -> tuple[dict[str, _Found], dict[str, _Found]]:
    """Name -> topic or entry, and the topic that holds it; by exact spelling, and by key where that fails.

    "waits_for" and "waits for" may lead to two topics; "Waits-For" then leads to the first.
    """
    names: dict[str, _Found] = {}
    for one in all_topics():
        found = {_spelled(name): (one, one.id) for name in (one.id, *one.aliases, one.title)}
        names |= found | {_spelled(entry.code): (entry, one.id) for entry in one.entries}
    keys: dict[str, _Found] = {}
    for name, target in names.items():
        keys.setdefault(key_of(name), target)
    return names, keys


def _topic_text(topic: Topic) -> str:
    """Title, text, and the codes that it holds."""
    codes = [f"  {one.code}  {one.title}" for one in topic.entries]
    parts = [topic.title, topic.text, *(["\n".join(codes)] if codes else [])]
    return "\n\n".join(part for part in parts if part)


def _entry_text(entry: Entry, where: str) -> str:
    """One code alone."""
    return f"{entry.code}  {entry.title}\n\n{entry.text}\n\nAll such codes: stepcrit explain {where}"


def _near(topic: str) -> str:
    """What may have been meant."""
    import difflib  # noqa: PLC0415 - only an error needs it

    names = {key_of(n): n for one in all_topics() for n in (*one.aliases, *(e.code for e in one.entries))}
    names |= {key_of(one.id): one.id for one in all_topics()}
    wanted = key_of(topic)
    close = difflib.get_close_matches(wanted, names, n=NEAR, cutoff=0.6)
    close += [key for key in names if len(wanted) > 2 and wanted in key and key not in close]
    if not close:
        return "stepcrit explain lists the topics"
    return f"near: {', '.join(names[key] for key in close[:NEAR])}; stepcrit explain lists all topics"
