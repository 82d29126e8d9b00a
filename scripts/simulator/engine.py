"""Run a program: every rank's threads and device on one clock."""

from __future__ import annotations

from collections import Counter

from .clock import Clock
from .device import Device, Meeting
from .host import Host
from .journal import Run
from .program import Launch, Program


class StuckError(RuntimeError):
    """A program waits for something that never happens."""


def simulate(program: Program) -> Run:
    """Run `program` to its end and return what happened."""
    clock, run = Clock(), Run(program)
    meetings = _meetings(program)
    devices = [Device(rank, clock, run, meetings) for rank in range(len(program.ranks))]
    hosts = [Host(rank, clock, run, device) for rank, device in enumerate(devices)]
    for host in hosts:
        host.start()
    clock.run()
    stuck = [
        f"rank {rank} {t.name}" for rank, host in enumerate(hosts) for t in host.threads if not t.finished
    ]
    stuck += [f"rank {rank} device" for rank, device in enumerate(devices) if not device.is_idle()]
    if stuck:
        raise StuckError("waiting for ever: " + ", ".join(stuck))
    return run


def _meetings(program: Program) -> dict[str, Meeting]:
    """One meeting a collective, as large as the number of ranks that call it."""
    sizes: Counter[str] = Counter()
    for rank in program.ranks:
        for actions in rank.threads.values():
            for action in actions:
                if isinstance(action, Launch) and (collective := action.nodes[0].op.collective):
                    sizes[collective.key] += 1
    return {key: Meeting(size) for key, size in sizes.items()}
