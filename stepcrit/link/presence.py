"""Whether a recorded job uses a device, and whose: not recorded, not known and none are different answers."""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from stepcrit.link.backends import DEVICE_BACKENDS, DEVICE_RANGE
from stepcrit.model.arrays import distinct
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind
from stepcrit.model.links import Links
from stepcrit.model.once import once
from stepcrit.model.trace import RawTrace


class Platform(StrEnum):
    """Whose device a trace tells of: that decides how it is recorded."""

    CUDA = "CUDA"
    ROCM = "ROCm"
    XPU = "XPU"
    MTIA = "MTIA"
    OTHER = "other"  # a device of which the trace does not say whose
    CPU = "CPU"  # no sign of a device


_CALLS = ((Platform.ROCM, re.compile(r"^hip")), (Platform.CUDA, re.compile(r"^cu(da)?[A-Z]")))
_CATEGORIES = ((Platform.XPU, "xpu_"), (Platform.MTIA, "mtia_"))
_SIGNS = (
    (Platform.ROCM, re.compile(r"rccl|miopen")),
    (Platform.CUDA, re.compile(r"cudnn")),  # "nccl" is the name of AMD's library, too
    (Platform.XPU, re.compile(r"xccl")),
)
_DEVICES = (
    (Platform.ROCM, re.compile(r"AMD|Radeon|Instinct|\bMI\d{2,3}", re.IGNORECASE)),
    (Platform.CUDA, re.compile(r"NVIDIA|Tesla|GeForce|Quadro|RTX|GTX", re.IGNORECASE)),
)


class Use(StrEnum):
    """What a trace tells of device work."""

    RECORDED = "recorded"
    NOT_RECORDED = "not recorded"  # the job uses a device, its work is not in the file
    NOT_KNOWN = "not known"  # a device is listed, and nothing tells whether the job uses it
    NONE = "none"  # nothing speaks of a device, or calls were recorded and none launched work


class Presence(Struct, frozen=True):
    """How much of the job the recording holds.

    Attributes:
        use: of the device.
        sign: what shows that the job uses a device whose work was not recorded, "" otherwise.
        host: whether any operator, range or call of the host was recorded.
    """

    use: Use
    sign: str
    host: bool

    @property
    def device_known(self) -> bool:
        """Whether no device work means zero."""
        return self.use in (Use.RECORDED, Use.NONE)


_OPERATOR = re.compile(r"^aten::(_?cudnn|miopen)_(convolution|batch_norm|rnn|grid_sampler)")
"""Operators that exist on a device only. `aten::cudnn_is_acceptable` is asked on the CPU, too."""


@once
def presence(trace: RawTrace, links: Links) -> Presence:
    """What the trace holds of the device and of the host.

    Device work, then what can only come from device work, then calls (a recording with calls would hold
    launches), then the job's backend. A device in deviceProperties is listed whether or not it is used.
    """
    events = trace.events
    host = bool(events.is_kind(*HOST_KINDS).any())
    if events.is_kind(*DEVICE_KINDS).any():
        return Presence(Use.RECORDED, "", host)
    calls = events.is_kind(EventKind.RUNTIME)
    launches = bool((calls & links.is_class(WorkClass.LAUNCH)).any())
    sign = "the trace has launches" if launches else device_sign(trace)
    if sign:
        return Presence(Use.NOT_RECORDED, sign, host)
    return Presence(Use.NOT_KNOWN if trace.meta.devices and not calls.any() else Use.NONE, "", host)


@once
def device_sign(trace: RawTrace) -> str:
    """What, besides launches, shows that a job does device work; "" where nothing does."""
    events = trace.events
    if events.is_kind(EventKind.SYNC, EventKind.GPU_ANNOTATION).any():
        return "the trace has notes of the device"
    on_host = distinct(events.name[events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)])
    names = sorted(events.names[i] for i in on_host.tolist())
    for pattern, words in ((DEVICE_RANGE, "the trace has {} ranges"), (_OPERATOR, "the trace has {}")):
        found = next((match for match in map(pattern.match, names) if match), None)
        if found:
            return words.format(found[0])
    backends = () if events.is_kind(EventKind.RUNTIME).any() else device_backends(trace.meta.backend)
    return f"the job's backend is {', '.join(backends)}" if backends else ""


def device_backends(backend: str) -> tuple[str, ...]:
    """The libraries of a job's backend, "nccl" or "cuda:nccl", if they serve devices and nothing else.

    >>> [device_backends(each) for each in ("NCCL", "cuda:nccl", "cpu:gloo,cuda:nccl", "gloo", "")]
    [('nccl',), ('nccl',), (), (), ()]
    """
    parts = {part.rpartition(":")[2].strip() for part in backend.casefold().split(",")}
    return tuple(sorted(parts)) if parts <= DEVICE_BACKENDS else ()


@once
def platform_of(trace: RawTrace) -> Platform:
    """Whose device it is: by calls, their categories, listed devices, and what else shows one."""
    events = trace.events
    runtime, device = events.is_kind(EventKind.RUNTIME), events.is_kind(*DEVICE_KINDS)
    calls = [events.names[i] for i in distinct(events.name[runtime]).tolist()]
    cats = [events.cats[i] for i in distinct(events.cat[runtime | device]).tolist()]
    listed, sign = [d.name for d in trace.meta.devices], device_sign(trace)
    found = (
        *(who for who, pattern in _CALLS if any(pattern.match(call) for call in calls)),
        *(who for who, start in _CATEGORIES if any(cat.startswith(start) for cat in cats)),
        *(who for who, pattern in _DEVICES if any(pattern.search(name) for name in listed)),
        *(who for who, pattern in _SIGNS if pattern.search(sign)),
    )
    has_device = runtime.any() or device.any() or listed or sign
    return next(iter(found), Platform.OTHER if has_device else Platform.CPU)
