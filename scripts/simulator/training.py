"""The pieces of a training loop that scenarios are put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .program import Collective, DeviceOp, Loader, Machine, Program, Rank, Recording
from .script import COMPUTE, Params, Script

GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
GEMM_BACKWARD = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn"
BRANCH = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_tensor16x8x16_kernel"
ATTENTION = "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::half_t>, true>(Flash_fwd_params)"
POINTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
REDUCTION = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, "
    "unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4>)"
)
UPDATE = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, "
    "at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>"
    "(at::native::(anonymous namespace)::TensorListMetadata<2>, std::plus<float>, float)"
)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
COMM = 20  # the stream of the process group
MAIN, AUTOGRAD = "main", "autograd"

DEFAULTS: Params = {
    "steps": 5,
    "first_step": 3,
    "unrecorded_steps": 0,
    "layers": 3,
    "gemm_ns": 120_000,
    "pointwise_ns": 15_000,
    "attention_ns": 0,
    "op_ns": 6_000,
    "python_ns": 10_000,
    "launch_ns": 4_500,
    "pdl_ns": 0,
    "queue_depth": 1_023,
    "submit_percent": 100,
    "jitter_permille": 20,
    "sync_records": 0,
    "flows": 1,
}


class Loop:
    """The two threads of one training process."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.main = Script(MAIN, params)
        self.autograd = Script(AUTOGRAD, params)
        self._sequence = 40  # autograd's counter; recording starts in the middle of a run
        self._tape: list[tuple[int, int]] = []  # layer and sequence number of its first node
        self._backwards = 0

    def numbers(self) -> range:
        """The steps to run, as the profiler's schedule counts them."""
        first, recorded = self.params["first_step"], self.params["steps"]
        return range(first - self.params["unrecorded_steps"], first + recorded)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Be inside one step."""
        self.main.step = self.autograd.step = number
        with self.main.annotation(f"ProfilerStep#{number}"):
            yield
        self.main.work(self.params["python_ns"] // 5)

    def rank(self, loader: Loader | None = None) -> Rank:
        """Close the recording, as the profiler does, with a wait of its own."""
        self.main.step = -1
        self.main.work(60_000)
        self.main.sync("cudaDeviceSynchronize")
        threads = {MAIN: tuple(self.main.actions)}
        if self.autograd.actions:
            threads[AUTOGRAD] = tuple(self.autograd.actions)
        return Rank(threads, loader)

    def batch_to_device(self) -> None:
        """Move the batch to the device without waiting."""
        with self.main.op("aten::to"), self.main.op("aten::_to_copy"), self.main.op("aten::copy_"):
            self.main.work(self.params["op_ns"])
            self.main.copy_to_device(self.params["pointwise_ns"])

    def zero_grad(self) -> None:
        """Forget the gradients."""
        with self.main.annotation("Optimizer.zero_grad#SGD.zero_grad"):
            self.main.work(self.params["op_ns"])

    def forward(self) -> None:
        """Run the layers and the loss."""
        for layer in range(self.params["layers"]):
            self.main.work(self.params["python_ns"])
            self._layer_forward(layer)
        self.main.work(self.params["python_ns"])
        with self.main.op("aten::mse_loss", self._sequence):
            self.simple_op("aten::mean", REDUCTION, self.params["pointwise_ns"], self._sequence)
        self._tape.append((-1, self._sequence))
        self._sequence += 1

    def backward(
        self, after_layer: Callable[[int], None] | None = None, at_end: Callable[[], None] | None = None
    ) -> None:
        """Run the tape backwards on the autograd thread while the main thread waits."""
        self._backwards += 1
        self.main.post(f"backward {self._backwards}")
        self.autograd.sleep(f"backward {self._backwards}")
        for layer, sequence in reversed(self._tape):
            self._layer_backward(layer, sequence)
            if after_layer and layer >= 0:
                after_layer(layer)
        self._tape.clear()
        if at_end:
            at_end()
        self.autograd.post(f"backward {self._backwards} done")
        self.main.sleep(f"backward {self._backwards} done")

    def update(self) -> None:
        """Step the optimizer."""
        self.main.work(self.params["python_ns"])
        with self.main.annotation("Optimizer.step#SGD.step"):
            self.main.work(self.params["op_ns"])
            self.simple_op("aten::_foreach_add_", UPDATE, 2 * self.params["pointwise_ns"])

    def simple_op(self, name: str, kernel: str, ns: int, sequence: int | None = None) -> None:
        """Run an operator of the main thread that launches one kernel."""
        _operator(self.main, name, (kernel, ns), sequence)

    def _layer_forward(self, layer: int) -> None:
        params, main, sequence = self.params, self.main, self._sequence
        with main.op("aten::linear", sequence):
            self.simple_op("aten::addmm", GEMM, params["gemm_ns"], sequence)
        if params["attention_ns"]:
            self.simple_op("aten::_flash_attention_forward", ATTENTION, params["attention_ns"])
        with main.op("aten::relu", sequence + 1):
            self.simple_op("aten::clamp_min", POINTWISE, params["pointwise_ns"], sequence + 1)
        self._tape.append((layer, sequence))
        self._sequence += 2

    def _layer_backward(self, layer: int, sequence: int) -> None:
        params, thread = self.params, self.autograd
        if layer < 0:
            with _node(thread, "MseLossBackward0", sequence):
                _operator(thread, "aten::mse_loss_backward", (POINTWISE, params["pointwise_ns"]))
            return
        with _node(thread, "ReluBackward0", sequence + 1):
            _operator(thread, "aten::threshold_backward", (POINTWISE, params["pointwise_ns"]))
        with _node(thread, "AddmmBackward0", sequence):
            for _ in range(2):
                _operator(thread, "aten::mm", (GEMM_BACKWARD, params["gemm_ns"]))
        with thread.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"):
            thread.work(params["op_ns"] // 2)


@contextmanager
def _node(thread: Script, name: str, sequence: int) -> Iterator[None]:
    with thread.op(f"autograd::engine::evaluate_function: {name}", sequence, backward=True):
        thread.work(thread.params["op_ns"] // 4)
        with thread.op(name, sequence, backward=True):
            yield


def _operator(thread: Script, name: str, kernel: tuple[str, int], sequence: int | None = None) -> None:
    with thread.op(name, sequence):
        thread.work(thread.params["op_ns"])
        thread.kernel(*kernel)
        thread.work(thread.params["op_ns"] // 3)


class Buckets:
    """What DistributedDataParallel adds to a backward pass: one all-reduce a layer, awaited at the end."""

    def __init__(self, loop: Loop) -> None:
        self._thread = loop.autograd
        self._params = loop.params
        self._calls = 0
        self._pending: list[str] = []

    def reduce(self, layer: int) -> None:
        """Start the all-reduce of a layer's gradients; the first layer holds most of them."""
        self._calls += 1
        event = f"bucket {self._calls}"
        ns = self._params["transfer_ns"] * (self._params["tail_percent"] if layer == 0 else 100) // 100
        collective = Collective(
            f"all_reduce {self._calls}", "allreduce", ns * 25, self._calls, self._params["ranks"]
        )
        op = DeviceOp(ALL_REDUCE, ns, collective=collective)
        with self._thread.op("c10d::allreduce_"), self._thread.communication(collective):
            self._thread.work(self._params["op_ns"])
            with self._thread.annotation("nccl:all_reduce"):
                self._thread.record(f"ready {self._calls}", COMPUTE)
                self._thread.wait(f"ready {self._calls}", COMM)
                self._thread.launch(op, COMM, "cuLaunchKernelEx")
                self._thread.record(event, COMM)
        self._pending.append(event)

    def finish(self) -> None:
        """Let the compute stream wait for every bucket."""
        for event in self._pending:
            with self._thread.communication(Collective("", "wait", 0, self._calls, 1)):
                self._thread.work(self._params["op_ns"] // 3)
                self._thread.wait(event, COMPUTE)
        self._pending.clear()


def program(ranks: tuple[Rank, ...], params: Params, seed: int) -> Program:
    """Put ranks on the machine that `params` describe."""
    machine = Machine(
        queue_depth=params["queue_depth"],
        submit_percent=params["submit_percent"],
        jitter_permille=params["jitter_permille"],
    )
    recording = Recording(bool(params["sync_records"]), bool(params["flows"]), params["unrecorded_steps"])
    return Program(ranks, machine, recording, seed)
