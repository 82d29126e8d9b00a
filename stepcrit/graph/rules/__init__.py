"""The dependency rules, in the order in which they build on each other: that order is the design.

One rule is one function `(scene, claims) -> None` that adds claims of one kind of edge. To add one:
a function here, its place in RULES, and a fixture in which it alone decides the path.
"""

from __future__ import annotations

from collections.abc import Callable

from stepcrit.graph.claims import Claims
from stepcrit.graph.rules.backpressure import back_pressure
from stepcrit.graph.rules.event import event_waits, inferred_event_waits
from stepcrit.graph.rules.handover import autograd_handover
from stepcrit.graph.rules.launch import launch_points
from stepcrit.graph.rules.stream import stream_order
from stepcrit.graph.rules.wait import copy_waits, sync_waits
from stepcrit.graph.scene import Scene

Rule = Callable[[Scene, Claims], None]

RULES: tuple[Rule, ...] = (
    stream_order,
    event_waits,
    inferred_event_waits,
    launch_points,  # asks what kept the queue busy: after stream and events
    copy_waits,
    sync_waits,
    back_pressure,  # only calls that no wait explains
    autograd_handover,
)


DEVICE_RULES: tuple[Rule, ...] = (stream_order, event_waits, inferred_event_waits)
"""The rules that still hold when the host is left out."""


def apply_rules(scene: Scene) -> Claims:
    """Every claim that the rules make on a scene."""
    claims = Claims()
    for rule in DEVICE_RULES if scene.rules.device_only else RULES:
        rule(scene, claims)
    return claims
