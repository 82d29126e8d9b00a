"""Whether a job uses a device: recorded, not recorded, not known and none are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from stepcrit.link.linker import link
from stepcrit.link.presence import Platform, Use, platform_of, presence
from stepcrit.model.trace import Device
from tests.builders import trace

Event = dict[str, Any]
A100 = (Device(0, "NVIDIA A100"),)


def event(name: str, cat: str = "cpu_op", **args: Any) -> Event:
    return {"cat": cat, "name": name, "ts": 1, "dur": 9, "pid": 1, "tid": 1, "args": args}


OP, KERNEL = event("aten::mm"), event("k", "kernel", stream=7)
LAUNCH, QUERY = event("cudaLaunchKernel", "cuda_runtime"), event("cudaGetDeviceCount", "cuda_runtime")


@pytest.mark.parametrize(
    ("chrome", "meta", "use"),
    [
        ([OP, KERNEL], {}, Use.RECORDED),
        ([OP, LAUNCH], {}, Use.NOT_RECORDED),
        ([OP, event("nccl:all_to_all", "user_annotation")], {}, Use.NOT_RECORDED),
        ([OP, event("rccl:all_reduce")], {}, Use.NOT_RECORDED),
        ([OP, event("hccl:all_reduce")], {}, Use.NOT_RECORDED),
        ([OP, event("aten::cudnn_convolution")], {}, Use.NOT_RECORDED),
        ([OP, event("aten::miopen_batch_norm")], {}, Use.NOT_RECORDED),
        ([OP], {"backend": "nccl"}, Use.NOT_RECORDED),
        ([OP], {"backend": "xccl"}, Use.NOT_RECORDED),
        ([OP, QUERY], {"backend": "nccl"}, Use.NONE),  # with calls recorded, a launch would be there
        ([OP, QUERY], {"devices": A100}, Use.NONE),
        ([OP], {"devices": A100}, Use.NOT_KNOWN),  # listed whether or not it is used
        ([OP], {}, Use.NONE),
        ([OP, event("gloo:all_reduce")], {"backend": "gloo"}, Use.NONE),
        ([OP], {"backend": "cpu:gloo,cuda:nccl"}, Use.NONE),  # PyTorch's default, on any machine
        ([OP, event("aten::cudnn_is_acceptable")], {}, Use.NONE),  # asked on the CPU, too
        ([OP, event("c10d::allreduce_"), event("record_param_comms")], {}, Use.NONE),
    ],
)
def test_use_of_a_device_is_told_by_what_only_a_device_leaves(
    chrome: list[Event], meta: dict[str, Any], use: Use
) -> None:
    raw = trace(chrome, **meta)
    found = presence(raw, link(raw))
    assert (found.use, bool(found.sign)) == (use, use == Use.NOT_RECORDED)
    assert found.host


def test_a_trace_of_kernels_alone_has_no_host() -> None:
    raw = trace([KERNEL])
    assert not presence(raw, link(raw)).host


@pytest.mark.parametrize(
    ("chrome", "meta", "platform"),
    [
        ([OP], {"backend": "nccl"}, Platform.OTHER),  # NVIDIA's and AMD's library share the name
        ([OP], {"backend": "gloo"}, Platform.CPU),
        ([OP, event("rccl:all_reduce")], {}, Platform.ROCM),
        ([OP, event("xccl:all_reduce")], {}, Platform.XPU),
        ([OP, event("aten::cudnn_convolution")], {}, Platform.CUDA),
        ([OP, event("aten::miopen_convolution")], {}, Platform.ROCM),
    ],
)
def test_whose_device_it_is_without_calls(
    chrome: list[Event], meta: dict[str, Any], platform: Platform
) -> None:
    assert platform_of(trace(chrome, **meta)) == platform


def test_a_hostile_backend_is_not_repeated() -> None:
    raw = trace([OP], backend="\x1b[31m:nccl")
    assert presence(raw, link(raw)).sign == "the job's backend is nccl"
