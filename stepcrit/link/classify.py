"""Which class of work a row is. Metadata first (kind, collective arguments), names last.

The name table is ordered: the first pattern that matches decides. Patterns come from kernel names
seen in public traces of NVIDIA, AMD and compiled code; what none of them knows is `other kernel`,
never a guess.
"""

from __future__ import annotations

import re

import numpy as np

from stepcrit.model.arrays import BoolArray, Int8Array, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import EventKind, EventTable

KERNEL_NAMES: tuple[tuple[WorkClass, tuple[str, ...]], ...] = (
    (
        WorkClass.COMM,
        (
            r"nccl|rccl|msccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv",
            r"cross_device_reduce|(one|two)_?shot|multimem_|deep_?ep|lamport",
        ),
    ),
    # A compiled kernel is named after everything fused into it: only a matmul template is one thing.
    (WorkClass.GEMM, (r"^triton_(mm|bmm)|^triton_tem_fused_\w*(mm|linear)",)),
    (WorkClass.COMPILED, (r"^triton_|^triton\d|_fused_.*_\d+$",)),
    (WorkClass.NORM, (r"(rms|layer|group|batch|instance)_?norm",)),
    (WorkClass.REDUCTION, (r"^(void )?(at::native::)?reduce_kernel<",)),
    (WorkClass.ATTENTION, (r"flash|fmha|attention|attn|paged|mla_|_mha_|sdpa|sage_|softmax_warp.*masked",)),
    (
        WorkClass.OPTIMIZER,
        (r"multi_tensor_apply|FusedAdam|fused_adam|fused_sgd|adamw?_|lamb_|FusedOptimizer",),
    ),
    (
        WorkClass.CONV,
        (
            r"conv|winograd|implicit_gemm|xdlops_|dgrad|wgrad|fprop|im2col|col2im|igemm|scudnn",
            r"nchwToNhwc|nhwcToNchw|miopenSp3|SubTensorOp|batched_transpose_\d",
            r"fft[12]d_[rc]2[rc]_|flip_filter|Im2d2Col|cask_cudnn::compute",
        ),
    ),
    (
        WorkClass.NORM,
        (r"norm(?!al)|bn_(fw|bw)|welford|GammaBeta|RowwiseMoments|Compute(Backward)?FusedParams",),
    ),
    (
        WorkClass.GEMM,
        (
            r"gemm|gemv|cutlass|cublas|Cijk_|nvjet|matmul|splitk|_mm_|wvSplitK|dot_kernel|bmm|ck::kernel_",
            r"grouped_mm|moe_kernel|fused_moe",
        ),
    ),
    (
        WorkClass.EMBEDDING,
        (r"embedding|index_?select|gather_kernel|scatter_gather|index_put|indexing_backward|indexFunc",),
    ),
    (
        WorkClass.REDUCTION,
        (r"reduce(?!d)|softmax|cross_entropy|nll_loss|NLLCriterion|argmax|topk|cumsum|DeviceScan|sort|argm",),
    ),
    (
        WorkClass.ELEMENTWISE,
        (
            r"elementwise|vectorized|unrolled|CatArrayBatched|pointwise|distribution|copy|fill|index_kernel|op_tensor",
            r"dropout|gelu|silu|act_and_mul|rotary|rope|transpose|triu_tril|arange|where|cast|upsample|pool|OpTensor",
        ),
    ),
)

_PATTERNS = tuple((work, re.compile("|".join(parts), re.IGNORECASE)) for work, parts in KERNEL_NAMES)
_TYPES = re.compile(r"(cutlass|cute|cub|nv|c10|std)::\w*(_t|float\w*|array|tuple|integral_constant)\b")
# Argument types say nothing of the work: cutlass::bfloat16_t is no matrix product.
INPUT = re.compile(r"enumerate\(DataLoader\)|DataLoader.*__next__")
OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_OPTIMIZER_ANY = re.compile(r"^Optimizer\.(step|zero_grad)#")
_COMM_HOST = re.compile(r"^(nccl|gloo|xccl|hccl|ucc|mpi):|^c10d::|^record_param_comms")
_LAUNCH_CALL = re.compile(r"Launch|Memcpy|Memset")
_SYNC_CALL = re.compile(r"^(cuda|hip|cu|mtia|musa|aclrt)\w*Synchronize|^synchronizeStream$")


def kernel_class(name: str) -> WorkClass:
    """The class of a kernel by its name alone.

    >>> kernel_class("ampere_fp16_s16816gemm_fp16_128x64_tn").label
    'gemm'
    """
    bare = _TYPES.sub("", name)
    return next((work for work, pattern in _PATTERNS if pattern.search(bare)), WorkClass.KERNEL)


def classify(
    events: EventTable, launch: Int64Array, in_optimizer: Int64Array, in_input: Int64Array
) -> Int8Array:
    """WorkClass of every row.

    Args:
        events: the table.
        launch: from `link_launches`.
        in_optimizer: per row, the Optimizer.step range around it (or around its launch), or -1.
        in_input: per row, the DataLoader range around it, or -1.
    """
    work = np.full(len(events), WorkClass.HOST, np.int8)
    kernels = events.is_kind(EventKind.KERNEL)
    by_name = _classes_of_names(events, kernels)
    work[kernels] = by_name[events.name[kernels]]
    plain = kernels & (in_optimizer >= 0) & (work != WorkClass.COMM)
    work[plain] = WorkClass.OPTIMIZER
    work[_collective_rows(events, kernels)] = WorkClass.COMM
    work[events.is_kind(EventKind.MEMCPY)] = WorkClass.MEMCPY
    work[events.is_kind(EventKind.MEMSET)] = WorkClass.MEMSET
    _classify_host(events, work, in_optimizer, in_input)
    _classify_calls(events, work, launch)
    return work


def _classes_of_names(events: EventTable, kernels: BoolArray) -> Int8Array:
    """One class per interned name that any kernel has."""
    table = np.full(len(events.names), WorkClass.KERNEL, np.int8)
    for i in np.unique(events.name[kernels]).tolist():
        table[i] = kernel_class(events.names[i])
    return table


def _collective_rows(events: EventTable, kernels: BoolArray) -> list[int]:
    """Kernels that carry collective arguments: metadata beats any name."""
    return [row for row, args in events.args.items() if kernels[row] and "Collective name" in args]


def _classify_host(
    events: EventTable, work: Int8Array, in_optimizer: Int64Array, in_input: Int64Array
) -> None:
    """Host rows: where they are decides before what they are called."""
    host = events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    comm = np.array([bool(_COMM_HOST.search(name)) for name in events.names], np.bool_)
    work[host & comm[events.name]] = WorkClass.COMM_HOST
    zero_grad = np.array([bool(_OPTIMIZER_ANY.match(name)) for name in events.names], np.bool_)
    work[host & ((in_optimizer >= 0) | zero_grad[events.name])] = WorkClass.OPTIMIZER_HOST
    work[host & (in_input >= 0)] = WorkClass.INPUT


def _classify_calls(events: EventTable, work: Int8Array, launch: Int64Array) -> None:
    """Runtime calls: those that own device work launch it, the rest by what their name says."""
    runtime = events.is_kind(EventKind.RUNTIME)
    sync = np.array([bool(_SYNC_CALL.match(name)) for name in events.names], np.bool_)
    submits = np.array([bool(_LAUNCH_CALL.search(name)) for name in events.names], np.bool_)
    work[runtime] = WorkClass.RUNTIME
    work[runtime & submits[events.name]] = WorkClass.LAUNCH
    work[runtime & sync[events.name]] = WorkClass.SYNC
    work[launch[launch >= 0]] = WorkClass.LAUNCH
