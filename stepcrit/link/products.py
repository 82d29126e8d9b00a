"""Floating-point operations of matrix products, from the shapes of an operator's inputs."""

from __future__ import annotations

import re

Shape = tuple[int, ...]

_FIRST = {
    "aten::mm": 0,
    "aten::bmm": 0,
    "aten::_int_mm": 0,
    "aten::_scaled_mm": 0,
    "aten::addmm": 1,
    "aten::_addmm_activation": 1,
    "aten::baddbmm": 1,
}
"""Products by name, and which input is the left factor; the right one follows."""

_LIST = re.compile(r"\[(?:\[[0-9,]*\],?)+\]\Z")
_SHAPE = re.compile(r"\[([0-9,]*)\]")


def shapes_of(text: str) -> tuple[Shape, ...]:
    """The shapes in a list of inputs as the event table keeps it; none where a list of tensors is among them.

    >>> shapes_of("[[8,16],[16,4],[]]"), shapes_of("[[[2],[3]],[]]")
    (((8, 16), (16, 4), ()), ())
    """
    if not _LIST.match(text):
        return ()
    return tuple(
        tuple(int(size) for size in shape.split(",") if size) for shape in _SHAPE.findall(text[1:-1])
    )


def product_flops(name: str, text: str) -> int | None:
    """Multiplications and additions of one call; None where it is no product, or its shapes tell nothing.

    >>> product_flops("aten::mm", "[[8,16],[16,4]]"), product_flops("aten::addmm", "[[4],[8,16],[16,4],[],[]]")
    (1024, 1024)
    >>> product_flops("aten::bmm", "[[3,8,16],[3,16,4]]"), product_flops("aten::add", "[[8],[8],[]]")
    (3072, None)
    """
    first, shapes = _FIRST.get(name), shapes_of(text)
    if first is None or len(shapes) < first + 2:
        return None
    left, right = shapes[first : first + 2]
    fits = len(left) == len(right) in (2, 3) and left[-1] == right[-2] and left[:-2] == right[:-2]
    if not fits:
        return None
    flops = 2 * right[-1]
    for size in left:
        flops *= size
    return flops


def is_product(name: str) -> bool:
    """Whether an operator multiplies matrices."""
    return name in _FIRST
