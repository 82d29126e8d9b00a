"""The questions that `stepcrit whatif` can be asked, one at a time, and who answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stepcrit.cli.targets import same_target
from stepcrit.errors import UsageError

if TYPE_CHECKING:
    from stepcrit.graph.stepgraph import StepGraph
    from stepcrit.model.section import Document
    from stepcrit.session import Options


class Asked(NamedTuple):
    """The command line, in words.

    Attributes:
        changes: (operation, text) in the order given.
        models: words of resource models.
        how: --side, --self, --with-launch.
        curve, by, target, inject, save, output: the options of that name.
        rank: how many rows of --rank, or None.
    """

    changes: tuple[tuple[str, str], ...]
    models: tuple[str, ...]
    how: tuple[Any, bool, bool]
    curve: bool
    rank: int | None
    by: Any
    target: str | None
    inject: str | None
    save: str | None
    output: str | None

    @property
    def is_change(self) -> bool:
        """Whether something is changed, rather than looked for."""
        return bool(self.changes or self.models)


def check(asked: Asked) -> None:
    """Refuse what is no question, or more than one; before anything is read.

    Raises:
        UsageError: see above.
    """
    alone = {"--rank": asked.rank is not None, "--inject": asked.inject is not None}
    alone["a change or --model"] = asked.is_change
    if asked.target is not None and not asked.changes:
        alone["--target without a change"] = True
    named = [name for name, is_asked in alone.items() if is_asked]
    if not named:
        raise UsageError(
            "nothing to change",
            do="give --shrink aten::mm=0.5, --speedup, --set, --add or --remove; or --rank, --target, --inject",
        )
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} are different questions", do="ask one at a time")
    if not asked.changes and asked.inject is None and asked.how != ("auto", False, False):
        raise UsageError(
            "--side, --self and --with-launch are about a selection", do="leave them out, or give a change"
        )
    if asked.save and not asked.changes:
        raise UsageError(
            "--save keeps the prediction of a change", do="give one, such as --shrink aten::mm=0.5"
        )
    if asked.save and asked.output and same_target(asked.save, asked.output):
        raise UsageError("--save and -o name the same file", do="give each its own")
    if asked.curve and not asked.changes:
        raise UsageError("--curve is about a selection", do="give a change, such as --shrink aten::mm=0.5")


def answered(asked: Asked, source: str, options: Options, step: str | None) -> Document:
    """Read the trace and answer; what cannot be read of the question is refused before that.

    Raises:
        StepcritError: as the parts say.
    """
    from stepcrit.graph.change import Options as How  # noqa: PLC0415 - numpy loads here
    from stepcrit.graph.change import parse_change, parse_duration  # noqa: PLC0415
    from stepcrit.graph.models import parse_model  # noqa: PLC0415
    from stepcrit.graph.selector import parse_selector  # noqa: PLC0415
    from stepcrit.session import load  # noqa: PLC0415

    changes = tuple(parse_change(operation, text) for operation, text in asked.changes)
    models = tuple(parse_model(words) for words in asked.models)
    target_ns = None if asked.target is None else parse_duration(asked.target)
    selector = None if asked.inject is None else parse_selector(asked.inject)
    how, told = How(*asked.how), options.told()
    view = load(source, options).view(step)
    if asked.rank is not None:
        from stepcrit.answers import rank  # noqa: PLC0415

        return rank.answer(view, asked.by, top=asked.rank, settings=told)
    if selector is not None:
        from stepcrit.answers import room  # noqa: PLC0415

        return room.answer(view, selector, how, settings=told)
    if target_ns is not None and not changes:
        from stepcrit.answers import target  # noqa: PLC0415

        return target.answer(view, target_ns, asked.by, settings=told)
    from stepcrit.analyses.whatif import Question  # noqa: PLC0415
    from stepcrit.answers.whatif import Wanted, answer  # noqa: PLC0415

    question = Question(changes, how, models)
    document = answer(view, question, Wanted(curve=asked.curve, target_ns=target_ns), settings=told)
    if asked.save:
        _save(asked, view, document, source)
    return document


def _save(asked: Asked, view: StepGraph, document: Document, source: str) -> None:
    """Write the prediction down, whole or not at all."""
    from stepcrit.answers.prediction import prediction  # noqa: PLC0415
    from stepcrit.cli.output import write_file  # noqa: PLC0415

    side, self_only, with_launch = asked.how
    words = {
        "changes": [{"option": f"--{operation}", "value": text} for operation, text in asked.changes],
        "models": list(asked.models),
        "side": side,
        "self": self_only,
        "with_launch": with_launch,
    }
    write_file(prediction(view, document, words), str(asked.save), source=source)
