"""What a kernel's name says of its work: one ordered table, asked only where no metadata tells it.

The first entry that a name holds a word of, or that its pattern is found in, decides. Both come from kernel
names seen in public traces, and from how PyTorch, cuBLAS, cuDNN, CUTLASS, MIOpen, Triton and their like name
what they launch; tests/link/classes.tsv holds real names with what a reader would say of each. What none of
them knows is `other kernel`, never a guess. A library's helper kernels (the sum after a split matrix product,
a layout change before a convolution) are work of the class that needs them.
"""

from __future__ import annotations

import re

from msgspec import Struct

from stepcrit.model.classes import WorkClass


class Told(Struct, frozen=True):
    """What tells a class, in lower case.

    Attributes:
        work: the class.
        words: parts of names, with blanks between them: looking for one costs less than its place in a pattern.
        pattern: a regular expression for what no word says, or "".
    """

    work: WorkClass
    words: str = ""
    pattern: str = ""


# A name may be 64 kB of what a pattern looks for: what repeats in one that may begin anywhere is bounded, or atomic.
KERNEL_NAMES = (
    # A compiled kernel is named after everything fused into it, and so after what it is not (`all_reduce`,
    # `native_layer_norm`): it comes first. Only a template (`tem`) is one thing.
    Told(WorkClass.GEMM, pattern=r"^triton_(mm|bmm|addmm)|^triton_tem_fused_\w*(mm|linear)"),
    Told(WorkClass.ATTENTION, pattern=r"^triton_(tem_fused_)?\w*flex_(attention|decoding)"),
    Told(WorkClass.CONV, pattern=r"^triton_(tem_fused_\w*)?conv"),
    Told(
        WorkClass.COMPILED,
        pattern=r"^triton_|^triton\d|^(?>(\w*?_)??fused_).*_\d+$"  # inductor; TorchScript's fuser
        r"|^cudacodegen::kernel|^nvfuser_|^kernel_?cpp_?\d",
    ),
    Told(
        WorkClass.COMM,
        "nccl rccl xccl hccl oneccl msccl hcom_ nvshmem sendrecv allreduce all_reduce allgather all_gather"
        " reducescatter reduce_scatter alltoall all_toall allto_all all_to_all cross_device_reduce"
        " oneshot one_shot twoshot two_shot multimem_ deepep deep_ep lamport userbuffers",
    ),
    Told(
        WorkClass.NORM,
        "rmsnorm rms_norm layernorm layer_norm groupnorm group_norm batchnorm batch_norm"
        " instancenorm instance_norm qknorm qk_norm",
    ),
    Told(
        WorkClass.REDUCTION,
        "lpnormfunctor l2normfunctor lpnorm_cleanup",
        r"^(void )?(at::native::)?reduce_kernel<",
    ),
    # An embedding's backward may hold its optimizer, and bears its name.
    Told(
        WorkClass.EMBEDDING,
        "split_embedding_ dense_embedding_ ssd_embedding_ embedding_bag bounds_check_indices linearize_index"
        " permute_pooled_embs",
        r"^(void )?(::)?(permute_(indices|1d|2d|data|lengths|embeddings)|_?offsets_range|block_bucketize|jagged_\w+_kernel)",
    ),
    # The keys and values of earlier tokens are copied where later ones find them.
    Told(
        WorkClass.ELEMENTWISE,
        "reshape_and_cache transform_bias_rescale_qkv",
        r"(store|write|set|copy)_(to_)?kv_?cache",
    ),
    Told(
        WorkClass.ATTENTION,
        "flash fmha attention attn mla_ _mha_ mha_fwd mha_bwd sdpa sage_",
        r"(prefill|decode)with\w{0,40}kvcache|^bwd_(preprocess|kernel_(dk_dv|dq|dkdv|fuse))",
    ),
    Told(
        WorkClass.OPTIMIZER,
        "adam adagrad novograd fusedsgd optimizer",
        r"sgd(?<![a-z]sgd)|lamb(?!d)",
    ),
    Told(
        WorkClass.CONV,
        "winograd implicit_gemm xdlops_ dgrad wgrad fprop im2col col2im vol2col col2vol igemm scudnn nchwtonhwc"
        " nhwctonchw cnhw2nchw nchw2cnhw miopensp3 subtensorop scalepackedtensor flip_filter naive_conv im2d2col"
        " im3d2col col2im2d col2im3d pointwise_mult_and_sum_complex",
        r"conv(?!er[ts])|batched_transpose_\d|fft[12]d_[rc]2[rc]_|cask\w{0,40}cudnn\w{0,40}::compute|cutlass\w{0,200}_cudnn",
    ),
    Told(
        WorkClass.NORM,
        "bn_fw bn_bw welford gammabeta rowwisemoments computefusedparams computebackwardfusedparams"
        " computeinternalgradients",
        r"norm(?!al)",
    ),
    Told(WorkClass.ELEMENTWISE, "rotary", r"rope(?!rt)"),  # it embeds a position, and looks nothing up
    Told(
        WorkClass.GEMM,
        "gemm gemv cutlass cublas cijk_ nvjet matmul splitk _mm_ dot_kernel bmm ck::kernel_"
        " grouped_mm moe_kernel fused_moe marlin machete qmm_kernel",
    ),
    Told(
        WorkClass.EMBEDDING,
        "embedding indexselect index_select gather_kernel scatter_gather index_put index_copy index_add index_fill"
        " gpu_index_kernel indexing_backward indexfunc compute_grad_weight krn_partial sum_and_scatter gatherv2"
        " gatherv3 scatternd",
    ),
    Told(
        WorkClass.REDUCTION,
        "softmax cross_entropy nll_loss nllcriterion argm topk cumsum sort kernel_scan_ histogram"
        " wrapped_scan_config lookback_scan moe::dev::routing moe::dev::finalize moe_sum moe_align",
        r"reduce(?!d)|^_sum_"
        r"|cub::(\w+::){0,6}device(scan|select|compact|partition|runlength|unique|merge|histogram)",
    ),
    Told(
        WorkClass.ELEMENTWISE,
        "elementwise vectorized unrolled catarray pointwise distribution copy op_tensor multitensor multi_tensor"
        " dropout gelu silu swiglu geglu act_and_mul transpose triu_tril tril_indices arange where cast upsample"
        " pool optensor grid_sampler roll_cuda flip_cuda reflection_pad replication_pad chunk_cat clamp quantize",
        r"fill(?<!prefill)|_pad\dd|_memset$"
        r"|^aclnn(inplace)?(add|sub|mul|div)s?_|^(add|sub|mul|div)_\d+ cmpt exec$",
    ),
)

_TABLE = tuple(
    (told.work, told.words.split(), re.compile(told.pattern).search if told.pattern else None)
    for told in KERNEL_NAMES
)
_NOT_WORK = re.compile(
    # Argument types: cutlass::bfloat16_t is no matrix product.
    r"(cutlass|cute|cub|nv|c10|std)::\w*(_t|float\w*|array|tuple|integral_constant)\b"
    # Where a kernel comes from: what is written in a library for products or attention may be neither.
    r"|fbgemm(_gpu)?(?=::)|flashinfer|^kernel_cutlass_(kernel_)?"
)


def kernel_class(name: str) -> WorkClass:
    """The class of a kernel by its name alone.

    >>> kernel_class("ampere_fp16_s16816gemm_fp16_128x64_tn").label
    'gemm'
    """
    bare = _NOT_WORK.sub("", name).lower()
    for work, words, found in _TABLE:
        if any(map(bare.__contains__, words)) or (found is not None and found(bare)):
            return work
    return WorkClass.KERNEL
