"""The border every string crosses."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.report.safe import (
    ascii_text,
    csv_cell,
    html_text,
    is_unsafe,
    markdown_name,
    markdown_words,
    safe_text,
)

CONTROLLING = [
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    0xAD, 0x061C, 0x2028, 0x2029, 0x3164, 0xFE0F, 0xFEFF, 0xD800, 0xDFFF, 0xE0041, 0xE000, 0x378,
]  # fmt: skip


@pytest.mark.parametrize("code", CONTROLLING)
def test_a_controlling_character_becomes_visible(code: int) -> None:
    assert safe_text(f"a{chr(code)}b") == (f"a\\x{code:02x}b" if code < 0x100 else f"a\\u{{{code:x}}}b")


@pytest.mark.parametrize(
    "text", ["aten::add", "日本語 ü é 🚀", "12\u202fµs · ±3 %", "[red]x[/red]", "C:\\x1b"]
)
def test_what_only_prints_stays(text: str) -> None:
    assert safe_text(text) == text


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_limit_bounds_the_result(text: str, limit: int) -> None:
    assert len(safe_text(text, limit)) <= max(limit, 1)


@given(st.text())
def test_safe_twice_is_safe_once(text: str) -> None:
    once = safe_text(text, None)
    assert safe_text(once, None) == once
    assert ascii_text(once).isascii()


@given(st.text())
def test_csv_text_never_starts_a_formula(text: str) -> None:
    assert not re.match(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", csv_cell(text))


@pytest.mark.parametrize(
    ("text", "cell"), [("\t=1", "'\\x09=1"), ("\n+1", "'\\x0a+1"), ("-", "'-"), ("a=b", "a=b"), ("", "")]
)
def test_csv_by_hand(text: str, cell: str) -> None:
    assert csv_cell(text) == cell


@given(st.text("ab`| \\", min_size=1, max_size=20))
def test_a_code_span_closes_where_it_should(text: str) -> None:
    made = markdown_name(text)
    fence = re.match("`+", made)
    if fence:
        inside = made[len(fence[0]) : -len(fence[0])]
        assert made.endswith(fence[0])
        assert fence[0] not in re.findall("`+", inside)
    assert not re.search(r"(?<!\\)\|", made)
    assert not re.search(r"\\\\\|", made)


@given(st.text(max_size=40).filter(lambda t: t.strip()))
def test_markdown_names_are_harmless_or_code(text: str) -> None:
    made = markdown_name(text)
    assert made.startswith("`") or not re.search(r"[`*{}\[\]<>#|~&!@\\]|://|(^|\W)_|_(\W|$)", made)
    assert not any(is_unsafe(c) for c in made)


def test_words_of_ours_are_escaped() -> None:
    assert markdown_words("*a* <b> [c](d) @e #1 | x_y") == r"\*a\* \<b\> \[c\](d) \@e \#1 \| x\_y"


def test_html_is_escaped() -> None:
    assert html_text("<b a='1' c=\"2\">&\x1b") == "&lt;b a=&#x27;1&#x27; c=&quot;2&quot;&gt;&amp;\\x1b"
