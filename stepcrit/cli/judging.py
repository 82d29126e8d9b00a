"""`check`, from the command line to what was found: whose rules, which traces, and each against its baseline."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.cli.baseline import AtRef, Folder, baseline_of
from stepcrit.cli.config import CONFIG, project_config
from stepcrit.cli.lookup import files_like, from_here, is_like
from stepcrit.cli.watched import stale, too_large
from stepcrit.errors import ConfigError, InternalError, NotFoundInputError, StepcritError, UsageError, quoted
from stepcrit.model.checked import Checked, CheckedTrace, Effect, Outcome, Place, Remark
from stepcrit.model.config import Config, is_backwards
from stepcrit.model.section import Sentence, Unit, Value

if TYPE_CHECKING:
    from stepcrit.answers.check import Against
    from stepcrit.answers.sampled import Sampled
    from stepcrit.session import Options

MOST_TRACES = 1000


class Asked(Struct, frozen=True):
    """The command line.

    Attributes:
        traces: paths and globs; none: those of the configuration.
        config: the file that was named, or None.
        base: the baseline that was named, or None.
        is_trusted: whether this tree's own rules count, whatever the baseline's are.
        step: which steps are judged, or None.
    """

    traces: tuple[str, ...]
    config: str | None
    base: str | None
    is_trusted: bool
    step: str | None


class Ruled(Struct, frozen=True):
    """The rules that count.

    Attributes:
        config: they.
        own: those of this tree, None without any.
        base: what is compared with.
        notes, remarks: what must be said of the choice.
    """

    config: Config
    own: Config | None
    base: Folder | AtRef | None
    notes: tuple[Sentence, ...] = ()
    remarks: tuple[Remark, ...] = ()


def which_steps(word: str | None) -> str | None:
    """A choice of steps as the configuration takes it.

    Raises:
        UsageError: it is none.
    """
    is_read = word is None or re.fullmatch(r"median|worst|all|[0-9]{1,9}(-[0-9]{1,9})?", word)
    if is_read and not is_backwards(word or ""):
        return word
    raise UsageError(
        f"--steps cannot read {quoted(word or '')}", do="median, worst, all, a step's number, or 12-15"
    )


def check_own(rules: Ruled) -> None:
    """Only budgets that judge can be tightened, and only this tree's can be written.

    Raises:
        UsageError: there are none, or another tree's judge.
    """
    if rules.own is None:
        raise UsageError("there are no budgets to tighten", do="write some: see stepcrit explain budgets")
    if rules.config.source != rules.own.source:
        raise UsageError(
            f"the budgets of {rules.config.source} judge, and cannot be rewritten",
            do="judge by this tree's: --trust-config, or --base '' for budgets alone",
        )


def tightened(rules: Ruled, found: Checked) -> Checked:
    """What was found, and what of the budgets came down to it.

    Raises:
        StepcritError: the file cannot be written, or was changed meanwhile.
    """
    from stepcrit.cli.tighten import tighten  # noqa: PLC0415 - only here

    if rules.own is None:
        return found
    done = tighten(rules.own, found)
    notes = () if done else (Sentence("no budget could be tightened"),)
    return replace(found, tightened=done, notes=(*found.notes, *notes))


def ruled(asked: Asked) -> Ruled:
    """Choose the rules: those of the baseline where it is a git ref, for a change must not judge itself.

    Raises:
        StepcritError: a configuration cannot be read, or the baseline is not there.
    """
    from stepcrit.answers.rules import check_metrics  # noqa: PLC0415 - numpy loads here

    own = project_config(asked.config)
    word = asked.base if asked.base is not None else own.base if own else ""
    base = baseline_of(word)
    chosen = _chosen(asked, own, base)
    config = replace(chosen.config, steps=asked.step) if asked.step else chosen.config
    for each in (own, config):
        if each is not None:
            check_metrics(each)
    return replace(chosen, config=config)


def _chosen(asked: Asked, own: Config | None, base: Folder | AtRef | None) -> Ruled:
    """Whose rules count."""
    mine = Ruled(own or Config(""), own, base)
    if not isinstance(base, AtRef) or asked.is_trusted:
        return mine
    theirs = base.config(asked.config)
    ref = Value(base.commit.ref, Unit.NAME)
    if theirs is None:
        if own is None:
            return mine
        words = "{} has no rules, so these of this tree judge themselves: --trust-config lets them pass"
        return replace(
            mine, remarks=(Remark("C109", Outcome.INCONCLUSIVE, Effect.OPEN, Sentence(words, (ref,))),)
        )
    notes: tuple[Sentence, ...] = ()
    if own is None or _essence(own) != _essence(theirs):
        words = "{} differs in this tree: judged by that of {} (--trust-config judges by this one)"
        source = Value(own.source if own else CONFIG, Unit.NAME)
        notes = (Sentence(words, (source, ref)),)
    return Ruled(theirs, own, base, notes)


def _essence(config: Config) -> Config:
    """What a configuration says, wherever it is written."""
    nowhere = Place("", 0)
    return replace(
        config,
        source="",
        watch=tuple(replace(each, place=nowhere) for each in config.watch),
        budgets=tuple(replace(each, place=nowhere) for each in config.budgets),
    )


def check(asked: Asked, rules: Ruled, options: Options) -> Checked:
    """Judge every trace, one after the other.

    Raises:
        UsageError: there is none.
        StepcritError: as the rules say; a trace that cannot be read is a verdict of its own.
    """
    patterns = tuple(from_here(one) for one in asked.traces or rules.config.traces)
    if not patterns:
        raise UsageError(
            "no trace given",
            do='name some, or write them into stepcrit.toml: [check] traces = ["traces/*.json.gz"]',
        )
    gone = rules.base.gone(patterns) if rules.base else []
    found = _traces(asked, rules, patterns, gone)
    traces = [_judged(path, rules, options) for path in found]
    traces += [_deleted(path, rules) for path in gone]
    order = [Effect.FAILS, Effect.OPEN, Effect.NONE]
    traces.sort(key=lambda one: (order.index(one.effect), one.path))
    name = rules.base.name if rules.base else ""
    return Checked(rules.config.source, name, tuple(traces), (*rules.notes, *_unjudged(rules)), rules.remarks)


def _unjudged(rules: Ruled) -> tuple[Sentence, ...]:
    """That budgets of growth judge nothing, for want of a baseline."""
    growing = [one for one in rules.config.budgets if one.grow is not None or one.grow_abs is not None]
    if rules.base is not None or not growing:
        return ()
    words = "{} of growth, and there is no baseline: give --base, or [check] base"
    return (
        Sentence(
            words, (Value("1 budget is" if len(growing) == 1 else f"{len(growing)} budgets are", Unit.TEXT),)
        ),
    )


def _traces(asked: Asked, rules: Ruled, patterns: tuple[str, ...], gone: list[str]) -> list[str]:
    """The files that are judged.

    Raises:
        UsageError: one that was typed is not there, there is none, or more than MOST_TRACES.
    """
    found: dict[str, None] = {}
    missing = []
    for pattern in patterns:
        here = files_like(pattern, MOST_TRACES + 1)
        missing += [] if here or any(is_like(path, pattern) for path in gone) else [pattern]
        found |= dict.fromkeys(here)
    if len(found) > MOST_TRACES:
        raise UsageError(f"more than {MOST_TRACES} traces", do="name fewer")
    if missing and (asked.traces or not (found or gone)):
        where = "" if asked.traces else rules.config.source
        raise UsageError(
            f"no trace is called {', '.join(map(quoted, missing))}", where=where, do="check the path"
        )
    return sorted(found)


def _deleted(path: str, rules: Ruled) -> CheckedTrace:
    """A trace of the baseline that is not there any more: that must not pass unseen."""
    from stepcrit.answers.check import graded  # noqa: PLC0415 - numpy loads here

    name = rules.base.name if rules.base else ""
    words = "it is at {} and not in this tree: nothing is left to judge"
    remark = Remark("C108", Outcome.INCONCLUSIVE, Effect.OPEN, Sentence(words, (Value(name, Unit.NAME),)))
    return graded(CheckedTrace(path, Outcome.PASS, Effect.NONE, name, (), (remark,)))


def _judged(path: str, rules: Ruled, options: Options) -> CheckedTrace:
    """One trace; what keeps it from being read is its verdict."""
    from stepcrit.answers.check import check_trace, refused  # noqa: PLC0415 - numpy loads here
    from stepcrit.answers.rules import rules_for  # noqa: PLC0415

    remarks = (*too_large(rules.config, path), *stale(rules.config, path))
    shown = path.replace(os.sep, "/")
    try:
        now = sampled(path, options, rules.config.steps)
    except InternalError:
        raise
    except StepcritError as error:
        return refused(shown, error.code, _told(error), remarks)
    against, said = _against(path, rules, options)
    try:
        return check_trace(shown, rules_for(rules.config, shown), now, against, (*remarks, *said))
    except (ConfigError, InternalError):
        raise
    except StepcritError as error:  # what it holds does not go together
        return refused(shown, error.code, _told(error), (*remarks, *said))


def _against(path: str, rules: Ruled, options: Options) -> tuple[Against, list[Remark]]:
    """The baseline of one trace; that it is new, or cannot be read."""
    from stepcrit.answers.check import Against, effect_of  # noqa: PLC0415 - numpy loads here

    base, manner = rules.base, rules.config.incomparable
    if base is None:
        return Against(), []
    try:
        source = base.open(path)
        if source is None:
            return Against(name=base.name), [_new(base, path)]
        side = sampled(source, options, rules.config.steps)
    except InternalError:
        raise
    except StepcritError as error:
        told = _told(error)
        what = Sentence(f"the baseline cannot be read: {told.template}", told.values)
        return Against(name=base.name), [Remark(error.code, Outcome.INCONCLUSIVE, effect_of(manner), what)]
    explain = shlex.join(("stepcrit", "diff", base.called(path), path))
    return Against(side, base.name, explain, manner), []


def _new(base: Folder | AtRef, path: str) -> Remark:
    """A trace without a baseline: its budgets alone apply."""
    old = ""
    if isinstance(base, AtRef):
        old = base.commit.renamed_from(base.commit.repository.path_of(path))
    words = "{} has no such trace: budgets alone apply{}{}"
    renamed = "; it was renamed from " if old else ""
    values = (Value(base.name, Unit.NAME), Value(renamed, Unit.TEXT), Value(old, Unit.NAME))
    return Remark("C104", Outcome.NEW, Effect.NONE, Sentence(words, values))


def sampled(source: str | BinaryIO, options: Options, steps: str) -> Sampled:
    """Read a trace and choose the steps that are judged.

    Raises:
        StepcritError: it cannot be used.
    """
    from stepcrit.answers.sampled import Sampled  # noqa: PLC0415 - numpy loads here
    from stepcrit.graph.stepgraph import StepGraph  # noqa: PLC0415
    from stepcrit.session import load  # noqa: PLC0415

    trace = load(source, options)
    if isinstance(source, str) and trace.meta.source != os.path.basename(source):  # noqa: PTH119
        raise NotFoundInputError("This is a folder, not a trace.", where=source, do="name the trace in it")
    trace.view()  # refuses what has no path
    return Sampled(
        trace.raw,
        trace.links,
        trace.steps,
        lambda step: StepGraph(trace.raw, trace.links, trace.steps, step, trace.built),
        steps,
    )


def _told(error: StepcritError) -> Sentence:
    """An error as a sentence: what, where, what to do."""
    more = [part for part in (error.where, error.do) if part]
    return Sentence("{}", (Value("; ".join([error.what.rstrip("."), *more]), Unit.TEXT),))
