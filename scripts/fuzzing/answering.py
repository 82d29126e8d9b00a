"""Absurd traces through links, steps, graph and every answer; what is answered must keep its promises."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from fuzzing.judge import Target, fault, sampled, strict_json
from fuzzing.scenes import scene
from stepcrit.analyses.whatif import Question
from stepcrit.answers import analyze, critical, doctor, rank, room, target, whatif
from stepcrit.answers.whatif import Wanted
from stepcrit.errors import InternalError, StepcritError, UnusableInputError
from stepcrit.graph.change import Options as How
from stepcrit.graph.change import parse_change, parse_duration
from stepcrit.graph.models import parse_model
from stepcrit.graph.selector import parse_selector
from stepcrit.link.steps import StepOptions
from stepcrit.model.section import Document
from stepcrit.model.steps import Boundary
from stepcrit.report.html import fragment
from stepcrit.report.write import RENDERERS, render
from stepcrit.session import Options, Trace, load

GROUPS = ("op", "kernel", "class", "module", "collective", "line")
SELECTORS = ("*", "aten::mm", "aten::*", "k", "class:gemm", "class:comm", "class:copy", "stream:7", "step:1", "same", "re:.", "module:*", "line:*",
             "untracked", "class:sync")  # fmt: skip
MODELS = (
    "order",
    "free",
    "lanes",
    "queue:1",
    "queue:1024",
    "comm:k=2",
    "comm:alpha=fit,k=2",
    "comm:alpha=10us,beta=1us/MB,k=3",
    "contend",
    "contend:1.2",
)
Asked = dict[str, Any]


def absurd(dice: Random) -> bytes:
    """A trace a line an event, after one line with its header, the options and the questions."""
    made = scene(dice)
    events = made.pop("traceEvents")
    asked = {"header": made, "options": _options(dice), "step": dice.choice((None, None, None, "-1", "0", "1")),
             "asked": [_question(dice) for _ in range(2)]}  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in (asked, *events))


def _options(dice: Random) -> Asked:
    return {
        "boundary": dice.choice((None, None, None, "host", "launch", "device", "update")),
        "strict": dice.random() < 0.1,
        "device_only": dice.random() < 0.15,
        "floors": dice.choice(("none", "none", "auto")),
        "full": dice.random() < 0.2,
        "step_regex": dice.choice((None, None, None, "ProfilerStep", "aten::", ".*", "train")),
    }


def _question(dice: Random) -> Asked:
    verb = dice.choice(list(QUESTIONS))
    operation = dice.choice(
        (
            "shrink=0.5",
            "shrink=0",
            "speedup=2x",
            "speedup=1e9",
            "set=5us",
            "set=0ns",
            "add=1000s",
            "add=1ns",
            "remove=",
        )
    )
    return {
        "verb": verb, "by": dice.choice(GROUPS), "stream": dice.choice((None, None, 7, -1)), "selector": dice.choice(SELECTORS),
        "change": operation, "model": dice.choice((None, None, None, *MODELS)), "full": dice.random() < 0.5,
        "how": [dice.choice(("auto", "device", "host", "both")), dice.random() < 0.3, dice.random() < 0.3],
        "target": dice.choice((None, "0ns", "1ns", "10us", "1000000s")), "curve": dice.random() < 0.5,
    }  # fmt: skip


def check_answers(data: bytes) -> None:
    """Ask, and hold each answer to its promises; a sample is asked twice."""
    lines = data.splitlines()
    try:
        asked = json.loads(lines[0])
        events = [json.loads(line) for line in lines[1:]]
        asked["asked"], asked["options"], asked["step"], asked["header"]
    except (IndexError, ValueError, KeyError, TypeError):
        return
    text = json.dumps({**asked["header"], "traceEvents": events}).encode()
    told = list(_answers(text, asked))
    if sampled(data, 8) and list(_answers(text, asked)) != told:
        fault("asked twice, answered twice differently")


def _answers(text: bytes, asked: Asked) -> Iterator[bytes]:
    """JSON of every answer, or the refusal."""
    options = asked["options"]
    boundary = Boundary(options["boundary"]) if options["boundary"] else None
    steps = StepOptions(boundary, options["step_regex"], None)
    trace = load(
        io.BytesIO(text),
        Options(steps, options["strict"], options["device_only"], options["floors"], options["full"]),
    )
    yield checked(_doctor(trace))
    for question in asked["asked"]:
        try:
            yield checked(QUESTIONS[question["verb"]](trace, asked["step"], question))
        except InternalError:
            raise
        except StepcritError as error:
            if type(error) is StepcritError or not error.what:
                raise
            yield f"{error.code} {error.what}".encode()


def _doctor(trace: Trace) -> Document:
    try:
        notes = dict(trace.built.graph.notes)
    except StepcritError as error:
        if not isinstance(error, UnusableInputError) and error.exit_code != 2:
            raise
        notes = {}
    return doctor.answer(trace.raw, trace.links, trace.steps, notes)


def _analyze(trace: Trace, step: str | None, q: Asked) -> Document:
    return analyze.answer(trace.view(step), by=q["by"], stream=q["stream"], settings=trace.options.told())


def _critical(trace: Trace, step: str | None, q: Asked) -> Document:
    return critical.answer(trace.view(step), full=q["full"], settings=trace.options.told())


def _around(trace: Trace, step: str | None, q: Asked) -> Document:
    return critical.answer_around(trace.view(step), q["selector"], trace.options.told())


def _rank(trace: Trace, step: str | None, q: Asked) -> Document:
    return rank.answer(trace.view(step), q["by"], top=4, settings=trace.options.told())


def _target(trace: Trace, step: str | None, q: Asked) -> Document:
    return target.answer(
        trace.view(step), parse_duration(q["target"] or "1us"), q["by"], settings=trace.options.told()
    )


def _room(trace: Trace, step: str | None, q: Asked) -> Document:
    return room.answer(
        trace.view(step), parse_selector(q["selector"]), How(*q["how"]), settings=trace.options.told()
    )


def _whatif(trace: Trace, step: str | None, q: Asked) -> Document:
    operation, _, amount = q["change"].partition("=")
    changes = (parse_change(operation, q["selector"] + (f"={amount}" if amount else "")),)
    question = Question(changes, How(*q["how"]), (parse_model(q["model"]),) if q["model"] else ())
    wanted = Wanted(curve=q["curve"], target_ns=None if q["target"] is None else parse_duration(q["target"]))
    return whatif.answer(trace.view(step), question, wanted, settings=trace.options.told())


QUESTIONS: dict[str, Callable[[Trace, str | None, Asked], Document]] = {
    "analyze": _analyze, "critical": _critical, "around": _around, "rank": _rank, "target": _target, "room": _room, "whatif": _whatif,
}  # fmt: skip


# --- promises ----------------------------------------------------------------------------------


def checked(document: Document) -> bytes:
    """The document as JSON, after it kept its promises in every format."""
    made = render(document, "json")
    answer = strict_json(made)
    for where, part in _objects(answer["data"], "data"):
        _check_conserved(where, part)
    unknown = {f"data.{one['path']}" for one in answer["unknown"]}
    nulls = set(_nulls(answer["data"], "data"))
    if unknown != nulls:
        fault(f"nulls and their reasons differ: {sorted(unknown ^ nulls)}")
    for fmt in RENDERERS:
        render(document, fmt)
    fragment(document)
    return made


def _objects(value: Any, path: str) -> Iterator[tuple[str, Asked]]:
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from _objects(inner, f"{path}.{key}")
    for inner in value if isinstance(value, list) else ():
        yield from _objects(inner, f"{path}[]")


def _check_conserved(where: str, part: Asked) -> None:
    """Parts of a path sum to its length; no share leaves 0..1 where it is one of a whole."""
    elapsed = part.get("elapsed_ns")
    for key in ("by_class_ns", "by_group_ns", "by_evidence_ns"):
        if key in part and isinstance(elapsed, int) and sum(part[key].values()) != elapsed:
            fault(f"{where}.{key} sums to {sum(part[key].values())}, not to {elapsed}")
    for key, inner in part.items():
        if (
            key.endswith("_share")
            and isinstance(inner, (int, float))
            and not inner >= -1e-9
            and "saving" not in key
        ):
            fault(f"{where}.{key} is {inner}")


def _nulls(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from _nulls(inner, f"{path}.{key}")
    for inner in value if isinstance(value, list) else ():
        yield from _nulls(inner, f"{path}[]")


ANSWERS = Target("answers", absurd, check_answers, is_lines=True, bounded=900, chunk=150)
