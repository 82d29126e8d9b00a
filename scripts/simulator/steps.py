"""How each kind of training step is written: parameters and a seed to a program."""

from __future__ import annotations

from . import training as t
from .program import DeviceOp, Loader, Node, Program
from .script import COMPUTE, Params

SIDE = 24  # a second compute stream


def plain_steps(params: Params, seed: int) -> Program:
    """Load, forward, backward, update; nothing but sizes decides what binds."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.batch_to_device()
            loop.zero_grad()
            loop.forward()
            loop.backward()
            loop.update()
    return t.program((loop.rank(),), params, seed)


def item_sync(params: Params, seed: int) -> Program:
    """Read the loss on the host at the end of every step."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.zero_grad()
            loop.forward()
            loop.backward()
            loop.update()
            _read_loss(loop)
    return t.program((loop.rank(),), params, seed)


def _read_loss(loop: t.Loop) -> None:
    main, params = loop.main, loop.params
    main.work(params["python_ns"])
    with main.op("aten::item"), main.op("aten::_local_scalar_dense"):
        main.work(params["op_ns"])
        copy = DeviceOp("Memcpy DtoH (Device -> Pageable)", 1_600, "gpu_memcpy", bytes=4)
        main.launch(copy, COMPUTE, "cudaMemcpyAsync", blocking=True)
        main.sync("cudaStreamSynchronize", stream=COMPUTE)
    main.work(params["python_ns"])


def two_streams(params: Params, seed: int) -> Program:
    """Fork to a second stream and join again, by events."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.batch_to_device()
            loop.zero_grad()
            _fork_and_join(loop)
            loop.forward()
            loop.backward()
            loop.update()
    return t.program((loop.rank(),), params, seed)


def _fork_and_join(loop: t.Loop) -> None:
    main, params = loop.main, loop.params
    main.work(params["python_ns"])
    main.record("fork", COMPUTE)
    main.wait("fork", SIDE)
    for stream, kernel, count in (
        (SIDE, t.ATTENTION, params["side_kernels"]),
        (COMPUTE, t.BRANCH, params["near_kernels"]),
    ):
        for _ in range(count):
            with main.op("aten::matmul"):
                main.work(params["op_ns"])
                main.kernel(kernel, params["branch_ns"], stream)
    main.record("join", SIDE)
    main.wait("join", COMPUTE)
    loop.simple_op("aten::add", t.POINTWISE, params["pointwise_ns"])


def graph_step(params: Params, seed: int) -> Program:
    """Replay a captured step with two branches."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.batch_to_device()
            loop.main.work(params["python_ns"])
            loop.main.graph(_captured_step(params))
            loop.main.work(params["python_ns"])
    return t.program((loop.rank(),), params, seed)


def _captured_step(params: Params) -> tuple[Node, ...]:
    """Each layer: a gemm, then attention beside two pointwise kernels, then the next layer."""
    nodes: list[Node] = []
    for _ in range(params["layers"]):
        last = (len(nodes) - 2, len(nodes) - 1) if nodes else ()
        first = len(nodes)
        nodes += [
            Node(DeviceOp(t.GEMM, params["gemm_ns"]), last),
            Node(DeviceOp(t.POINTWISE, params["pointwise_ns"]), (first,)),
            Node(DeviceOp(t.POINTWISE, params["pointwise_ns"]), (first + 1,)),
            Node(DeviceOp(t.ATTENTION, params["attention_ns"]), (first,)),
        ]
    nodes.append(Node(DeviceOp(t.UPDATE, params["pointwise_ns"]), (len(nodes) - 2, len(nodes) - 1)))
    return tuple(nodes)


def ddp(params: Params, seed: int) -> Program:
    """Reduce gradients while the backward pass runs; the last bucket has nothing left to hide behind."""
    ranks = []
    for rank in range(params["ranks"]):
        slower = params["gemm_ns"] * (100 + params["skew_percent"] * rank) // 100
        loop = t.Loop({**params, "gemm_ns": slower})
        buckets = t.Buckets(loop)
        for number in loop.numbers():
            with loop.step(number):
                loop.batch_to_device()
                loop.zero_grad()
                with loop.main.annotation("DistributedDataParallel.forward"):
                    loop.forward()
                loop.backward(buckets.reduce, buckets.finish)
                loop.update()
        ranks.append(loop.rank())
    return t.program(tuple(ranks), params, seed)


def accumulation(params: Params, seed: int) -> Program:
    """Update once in several profiler steps."""
    loop = t.Loop(params)
    for index, number in enumerate(loop.numbers(), start=1):
        with loop.step(number):
            loop.batch_to_device()
            loop.forward()
            loop.backward()
            if index % params["microbatches"] == 0:
                loop.update()
                loop.zero_grad()
    return t.program((loop.rank(),), params, seed)


def dataloader(params: Params, seed: int) -> Program:
    """Wait for batches that workers cannot produce fast enough."""
    loop = t.Loop(params)
    for index, number in enumerate(loop.numbers()):
        with loop.step(number):
            with loop.main.annotation(t.NEXT):
                loop.main.work(params["op_ns"])
                loop.main.next_batch(index)
                loop.main.work(params["op_ns"])
            loop.batch_to_device()
            loop.zero_grad()
            loop.forward()
            loop.backward()
            loop.update()
    loader = Loader(params["workers"], params["prefetch"], params["produce_ns"])
    return t.program((loop.rank(loader),), params, seed)


def full_queue(params: Params, seed: int) -> Program:
    """Launch far more than the queue takes."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.main.work(params["python_ns"])
            for _ in range(params["ops"]):
                with loop.main.op("aten::_foreach_mul_"):
                    loop.main.work(params["op_ns"])
                    for _ in range(params["kernels_per_op"]):
                        loop.main.kernel(t.POINTWISE, params["pointwise_ns"])
            loop.update()
    return t.program((loop.rank(),), params, seed)
