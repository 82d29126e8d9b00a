"""What next: each line is about the row whose saving it states, in words that fit the work."""

from __future__ import annotations

from stepcrit.analyses import ranking
from stepcrit.answers.advice import Next, what_next
from stepcrit.answers.figures import figures
from stepcrit.model.section import Sentence
from stepcrit.session import Options, Trace
from tests.builders import Event, event, trace


def launched(op: str, work: Event, at: int) -> list[Event]:
    """An operator, its launch call and what that launched."""
    number = work["args"]["correlation"]
    return [
        event("cpu_op", op, (at, at + 4)),
        event("cuda_runtime", "cudaMemcpyAsync", (at + 1, at + 3), correlation=number),
        work,
    ]


def advice(*chrome: Event) -> tuple[Trace, tuple[Next, ...]]:
    made = Trace(trace(list(chrome)), Options())
    return made, what_next(figures(made.view()))


def words(sentence: Sentence) -> str:
    return sentence.template.format(*(value.raw for value in sentence.values))


HTOD = event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", (6, 306), (0, 7), correlation=1)
DTOH = event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", (10, 190), (0, 20), correlation=2)


def test_a_line_names_the_row_that_its_saving_is_of() -> None:
    """Two copies side by side under one operator: 300 and 180 are gone together, so the operator is named."""
    made, (first, *_) = advice(*launched("aten::copy_", HTOD, 0), *launched("aten::copy_", DTOH, 4))
    (row,) = [row for row in ranking.analyze(made.view(), "op").rows if row.name == "aten::copy_"]
    assert row.free is not None
    assert words(first.what) == (
        "avoid or overlap the copies of aten::copy_ (most: Memcpy HtoD (Pinned -> Device)): keep data on the device"
    )
    assert (first.low_ns, words(first.evidence).split("save ")[1]) == (150_000, str(row.free.low_ns))


def test_a_copy_within_the_device_is_not_told_to_stay_there() -> None:
    inside = event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", (6, 306), (0, 7), correlation=1)
    _, found = advice(*launched("aten::copy_", inside, 0))
    assert words(found[0].what).endswith("work in place, keep tensors contiguous")


def test_work_is_advised_on_once_whether_or_not_an_operator_launched_it() -> None:
    """One copy of three has no launch in the trace: by its own name it would be the same copies again."""
    name = "Memcpy DtoD (Device -> Device)"
    copies = [
        event("gpu_memcpy", name, (at, at + 90), (0, 7), correlation=i) for i, at in enumerate((6, 96, 186))
    ]
    chrome = [*launched("aten::copy_", copies[0], 0), *launched("aten::copy_", copies[1], 4), copies[2]]
    _, found = advice(*chrome)
    about = [words(one.what) for one in found if name in words(one.what)]
    assert len(about) == 1
    assert "kernels of" not in about[0]


def test_what_no_operator_launched_goes_by_its_own_name() -> None:
    kernel = event("kernel", "lonely", (6, 306), (0, 7), correlation=9)
    _, found = advice(*launched("aten::copy_", HTOD, 0), {**kernel, "ts": 306})
    assert "make the kernels of lonely faster" in " ".join(words(one.what) for one in found)
