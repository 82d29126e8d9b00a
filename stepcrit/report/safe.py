r"""The border that every string from a trace crosses on its way out.

A kernel's name is whatever the program that wrote the trace said it is: it may hold an escape
sequence that clears the terminal, a formula for a spreadsheet, a link, or half a megabyte.
`safe_text` makes each character that does not simply print visible as `\x1b` or `\u{202e}`; the
other functions add what one kind of sink needs on top. Rich, csv and orjson do none of this.
"""

from __future__ import annotations

import html
import re
import unicodedata

LIMIT = 2000
"""No renderer for people shows more of one string; machine formats pass None and keep it whole."""

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# letters and symbols that draw nothing, and the selectors that change how wide a neighbour is
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(c) for c in range(0xFE00, 0xFE10)
}
# what a spreadsheet takes for the start of a formula, also behind blanks and in full-width forms
_CELL_START = re.compile(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_COMMAND = re.compile(r"^(\s*)::")
_BRACKETED = re.compile(r"##(?=[A-Za-z]*\[)")  # "##[error]", and "##vso[…]" or "##teamcity[…]" elsewhere
_PLAIN_WORDS = re.compile(r"[\w .,:;%()/+\-—–·…×µ±≥≤\u202f]*")
_LINK = re.compile(r"://|www\.|__|\b_|_\b|\bgh-\d", re.IGNORECASE)
_BARE_LINK = re.compile(r"(www)(?=\.)|(\bgh)(?=-\d)", re.IGNORECASE)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&!@])")


def safe_text(name: str, limit: int | None = LIMIT) -> str:
    r"""A string that only prints, whatever it was.

    Args:
        name: any string, lone surrogates included.
        limit: the longest result in characters, or None; what is cut leaves an ellipsis.

    >>> safe_text("a\x1b[31mb\u202e\n"), safe_text("[red]x[/red]"), safe_text("abcdef", 4)
    ('a\\x1b[31mb\\u{202e}\\x0a', '[red]x[/red]', 'abc…')
    """
    # a CI runner takes "##[" for a command wherever it stands in a line
    kept = _unbracketed(name if limit is None else name[: limit + 1], r"#\x23")
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(visible(c) if is_unsafe(c) else c for c in kept)
    if limit is not None and len(kept) > limit:
        return kept[: max(limit - 1, 0)] + "…"
    return kept


def safe_lines(text: str) -> str:
    r"""Lines of ours that repeat what was typed or read: they only print, and none is a command in a CI log.

    >>> print(safe_lines("no option \x1b[2J\n ::error::x"))
    no option \x1b[2J
     .:error::x
    """
    return "\n".join(no_command(safe_text(line, None)) for line in text.split("\n"))


def no_command(line: str) -> str:
    r"""A line that no CI runner takes for a command, as wide as it was: runners skip blanks of any script.

    >>> no_command("\u3000::error::x"), no_command("##[group]"), no_command("aten::mm")
    ('\u3000.:error::x', '#.[group]', 'aten::mm')
    """
    return _unbracketed(_COMMAND.sub(r"\1.:", line), "#.")


def _unbracketed(text: str, instead: str) -> str:
    """A text without the sign that a CI runner looks for anywhere in a line."""
    return _BRACKETED.sub(lambda _: instead, text) if "##" in text else text


def is_unsafe(char: str) -> bool:
    """Whether a character controls something instead of printing."""
    return char in _INVISIBLE or unicodedata.category(char) in _INVISIBLE_CATEGORIES


def visible(char: str) -> str:
    r"""The escape that is printed for a character: `\x1b` up to U+00FF, then `\u{202e}`."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def ascii_text(text: str) -> str:
    r"""A safe string in ASCII: our own signs spelled out, everything else as `\u{...}`.

    >>> ascii_text("12\u202fµs · ±3 … 日")
    '12 us - +/-3 ... \\u{65e5}'
    """
    if text.isascii():
        return text
    return "".join(_ASCII.get(c) or (c if c.isascii() else visible(c)) for c in text)


_ASCII = {
    "\u202f": " ", "\u00a0": " ", "µ": "u", "…": "...", "·": "-", "–": "-", "—": "-", "\u2212": "-", "×": "x",
    "±": "+/-", "≥": ">=", "≤": "<=", "→": "->", "←": "<-", "\u2018": "'", "\u2019": "'", "“": '"', "”": '"',
}  # fmt: skip


def csv_cell(text: str) -> str:
    """A text cell no spreadsheet takes for a formula; a reader strips one leading apostrophe.

    >>> csv_cell("=cmd()"), csv_cell("  -1+2"), csv_cell("aten::add")
    ("'=cmd()", "'  -1+2", 'aten::add')
    """
    # judged before control characters are made visible, too: spreadsheets skip a leading tab
    kept = safe_text(text, None)
    return f"'{kept}" if _CELL_START.match(text) or _CELL_START.match(kept) else kept


def html_text(text: str) -> str:
    """A string as HTML text or as a quoted attribute."""
    return html.escape(safe_text(text), quote=True)


def markdown_words(text: str) -> str:
    r"""Our own words in Markdown: every sign that could mean something is escaped.

    >>> print(markdown_words("set with_stack=True [now]"), markdown_words("www.a.b GH-1"))
    set with\_stack=True \[now\] www\.a.b GH\-1
    """
    kept = _MARKDOWN.sub(r"\\\1", safe_text(text)).replace("://", ":\\//")
    return _BARE_LINK.sub(r"\g<0>\\", kept)


def markdown_name(text: str) -> str:
    r"""A name in Markdown, also inside a table: plain when harmless, else a code span.

    In a code span nothing is a link, a mention, an image or a tag. Its fence is longer than any run of
    backticks inside; a pipe is escaped, as tables want it, except behind a backslash, where no escape works.

    >>> print(markdown_name("aten mul"), markdown_name("<img>"), markdown_name("a|b"), markdown_name("x`y"))
    aten mul `<img>` `a\|b` ``x`y``
    """
    kept = safe_text(text)
    if not kept.strip():
        return kept.strip()
    if _PLAIN_WORDS.fullmatch(kept) and not _LINK.search(kept) and not _starts_block(kept):
        return kept
    kept = re.sub(r"(?<!\\)(\\+)\|", r"\1x7c", kept).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", kept)), default=0))
    pad = " " if kept[0] in "` " or kept[-1] in "` " else ""
    return f"{fence}{pad}{kept}{pad}{fence}"


def _starts_block(text: str) -> bool:
    """Whether a line that starts like this would be a list, a rule, a heading or indented code."""
    return re.match(r"\s*([-+=]|\d+[.)])|\s{2}", text) is not None
