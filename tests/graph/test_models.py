"""The words for resource models: what is read, what is refused, and what an answer says of each."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stepcrit.errors import UsageError
from stepcrit.graph.models import Model, parse_model


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("order", Model("order")),
        ("free", Model("free")),
        (" lanes ", Model("lanes")),
        ("queue:1024", Model("queue", depth=1024)),
        ("comm:k=2", Model("comm", faster=Fraction(2))),
        ("comm:k=2x", Model("comm", faster=Fraction(2))),
        ("comm:k=0.5", Model("comm", faster=Fraction(1, 2))),
        ("comm:alpha=10us,k=2", Model("comm", faster=Fraction(2), alpha_ns=10_000)),
        ("comm:k=4, alpha=0ns", Model("comm", faster=Fraction(4), alpha_ns=0)),
        ("comm:alpha=fit,k=2", Model("comm", faster=Fraction(2), fitted=True)),
        ("comm:beta=10us/MB,k=2", Model("comm", faster=Fraction(2), beta=Fraction(1, 100))),
        ("comm:beta=1us/KiB", Model("comm", beta=Fraction(1000, 1024))),
        ("contend:1.2", Model("contend", slowdown=Fraction(6, 5))),
        ("contend:1", Model("contend", slowdown=Fraction(1))),
        ("contend", Model("contend")),
    ],
)
def test_words_are_read(text: str, model: Model) -> None:
    assert parse_model(text) == model


@pytest.mark.parametrize(
    "text",
    [
        "", "fre", "Free", "free:", "order:1", "lanes:2",
        "queue", "queue:", "queue:0", "queue:-1", "queue:1.5", "queue:ten", "queue:99999999999", "queue:²",
        "comm", "comm:", "comm:2", "comm:k=", "comm:k=0", "comm:k=-2", "comm:k=1e9", "comm:k=2,k=3", "comm:speed=2",
        "comm:alpha=10,k=2", "comm:alpha=-1us", "comm:beta=10us", "comm:beta=10us/mile", "comm:beta=10/MB", "comm:k=2,,",
        "contend:", "contend:0.9", "contend:-1", "contend:x", "contend:1001", "contend:1e400",
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_something_to_write_instead(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_model(text)
    assert any(word in refused.value.do for word in ("queue:1024", "k=2", "contend:1.2", "us/MB", "5us"))


def test_only_free_and_lanes_claim_a_bound() -> None:
    texts = ("order", "free", "lanes", "queue:2", "comm:k=2", "contend:2")
    assert {text: parse_model(text).claim for text in texts} == {
        "order": "modelled",
        "free": "bound",
        "lanes": "bound",
        "queue:2": "modelled",
        "comm:k=2": "modelled",
        "contend:2": "modelled",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queue:1024", "1024"),
        ("comm:alpha=10us,k=2.5", "2.5 times as fast"),
        ("comm:alpha=10us,k=2.5", "10.0\u202fµs"),
        ("comm:k=2", "unknown"),
        ("comm:alpha=fit,k=2", "fitted"),
        ("comm:beta=10us/MB", "0.01 ns per byte"),
        ("contend:1.2", "1.2 times slower"),
        ("contend", "this trace"),
    ],
)
def test_assumption_names_the_numbers_it_rests_on(text: str, said: str) -> None:
    assert said in parse_model(text).words
