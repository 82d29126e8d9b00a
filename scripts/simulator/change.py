"""A change to a program, made before it runs: what an optimisation would really have done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from .program import Action, Close, DeviceOp, Launch, Node, Open, Program, Rank, Record, Sync, WaitEvent, Work

What = Literal["kernel", "transfer", "self", "host", "op", "launch", "data", "remove_op", "remove_sync"]


@dataclass(frozen=True, slots=True)
class Change:
    """Scale one kind of duration to `percent`, or remove operators or host waits.

    Attributes:
        what: which durations.
            "kernel": device operations that are no collectives;
            "transfer": the moving part of collectives;
            "self": self time of operators, without the runtime calls in it;
            "host": self time of operators and the runtime calls directly in them;
            "op": as "host", and the device operations launched there;
            "launch": the cost of launch calls;
            "data": the production of a batch;
            "remove_op": an operator and everything inside it, device work included;
            "remove_sync": waiting calls, and the waiting of blocking copies.
        name: exact name of the kernel, operator or call; empty for all of them.
        percent: what is left of the duration.
        role: "path", "slack" or "host": why the change is in the truth file.
        caveat: why a prediction from the trace alone may differ, empty when it should not.
    """

    what: What
    name: str = ""
    percent: int = 50
    role: str = "path"
    caveat: str = ""

    @property
    def factor(self) -> float:
        """What is left, as a share."""
        return 0.0 if self.what.startswith("remove") else self.percent / 100

    def words(self) -> dict[str, Any]:
        """Describe the change for the truth file."""
        return {"what": self.what, "name": self.name or "*", "factor": self.factor, "role": self.role}

    def hint(self) -> str:
        """Return the selector and factor a user of `stepcrit whatif --shrink` would type."""
        selector = {"transfer": "class:comm", "data": "class:input", "remove_sync": "class:sync"}.get(
            self.what, self.name or "*"
        )
        return f"{selector}={self.factor:g}"


def apply(change: Change, program: Program) -> Program:
    """Return `program` with `change` made on every rank."""
    return replace(program, ranks=tuple(_change_rank(change, rank) for rank in program.ranks))


def _change_rank(change: Change, rank: Rank) -> Rank:
    edit = EDITS[change.what]
    threads = {name: tuple(edit(change, actions)) for name, actions in rank.threads.items()}
    loader = rank.loader
    if loader and change.what == "data":
        loader = replace(loader, produce_ns=_scaled(change, loader.produce_ns))
    return Rank(threads, loader)


def _scaled(change: Change, ns: int) -> int:
    return ns * change.percent // 100


def _selects(change: Change, name: str) -> bool:
    return change.name in {"", name}


def _edit_ops(change: Change, actions: tuple[Action, ...]) -> Iterator[Action]:
    """Scale device operations: collectives for "transfer", all others for "kernel"."""
    for action in actions:
        if isinstance(action, Launch):
            nodes = tuple(Node(_edit_op(change, node.op), node.after) for node in action.nodes)
            yield replace(action, nodes=nodes)
        else:
            yield action


def _edit_op(change: Change, op: DeviceOp) -> DeviceOp:
    wanted = (op.collective is not None) == (change.what == "transfer")
    return replace(op, ns=_scaled(change, op.ns)) if wanted and _selects(change, op.name) else op


def _edit_inside(change: Change, actions: tuple[Action, ...]) -> Iterator[Action]:
    """Scale what happens directly in the named operators; plain Python between operators has no name and stays."""
    inside: list[str] = []
    for action in actions:
        if isinstance(action, Open):
            inside.append(action.name)
        elif isinstance(action, Close):
            inside.pop()
        owned = bool(inside) and _selects(change, inside[-1])
        yield _edit_owned(change, action) if owned else action


def _edit_owned(change: Change, action: Action) -> Action:
    if isinstance(action, Work) and action.owner:
        return replace(action, ns=_scaled(change, action.ns))
    if isinstance(action, Launch) and change.what == "op":
        nodes = tuple(
            Node(replace(node.op, ns=_scaled(change, node.op.ns)), node.after) for node in action.nodes
        )
        action = replace(action, nodes=nodes)
    if isinstance(action, Launch | Record | WaitEvent | Sync) and change.what != "self":
        return replace(action, cost_ns=_scaled(change, action.cost_ns))
    return action


def _edit_launches(change: Change, actions: tuple[Action, ...]) -> Iterator[Action]:
    for action in actions:
        if isinstance(action, Launch) and _selects(change, action.call):
            yield replace(action, cost_ns=_scaled(change, action.cost_ns))
        else:
            yield action


def _remove_op(change: Change, actions: tuple[Action, ...]) -> Iterator[Action]:
    depth = 0  # of open operators below and including the removed one
    for action in actions:
        if isinstance(action, Open) and (depth or action.name == change.name):
            depth += 1
        elif isinstance(action, Close) and depth:
            depth -= 1
        elif not depth:
            yield action


def _remove_sync(change: Change, actions: tuple[Action, ...]) -> Iterator[Action]:
    """Drop waiting calls, and let blocking copies return at once."""
    for action in actions:
        if isinstance(action, Launch) and action.blocking and _selects(change, action.call):
            yield replace(action, blocking=False)
        elif not (isinstance(action, Sync) and _selects(change, action.call)):
            yield action


def _keep(_: Change, actions: tuple[Action, ...]) -> Iterator[Action]:
    yield from actions


EDITS: dict[str, Callable[[Change, tuple[Action, ...]], Iterator[Action]]] = {
    "kernel": _edit_ops,
    "transfer": _edit_ops,
    "self": _edit_inside,
    "host": _edit_inside,
    "op": _edit_inside,
    "launch": _edit_launches,
    "data": _keep,
    "remove_op": _remove_op,
    "remove_sync": _remove_sync,
}
