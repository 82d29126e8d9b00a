"""What a kernel's name says of its work: one ordered table, asked only where no metadata tells it.

The first pattern that matches decides. Patterns come from kernel names seen in public traces, and from how
PyTorch, cuBLAS, cuDNN, CUTLASS, MIOpen, Triton and their like name what they launch; tests/link/classes.tsv
holds real names with what a reader would say of each. What none of them knows is `other kernel`, never a
guess. A library's helper kernels (the sum after a split matrix product, a layout change before a
convolution) are work of the class that needs them.
"""

from __future__ import annotations

import re

from stepcrit.model.classes import WorkClass

KERNEL_NAMES: tuple[tuple[WorkClass, tuple[str, ...]], ...] = (
    # A compiled kernel is named after everything fused into it, and so after what it is not (`all_reduce`,
    # `native_layer_norm`): it comes first. Only a template (`tem`) is one thing.
    (WorkClass.GEMM, (r"^triton_(mm|bmm|addmm)|^triton_tem_fused_\w*(mm|linear)",)),
    (WorkClass.ATTENTION, (r"^triton_(tem_fused_)?\w*flex_(attention|decoding)",)),
    (WorkClass.CONV, (r"^triton_(tem_fused_\w*)?conv",)),
    (
        WorkClass.COMPILED,
        (
            r"^triton_|^triton\d|^(\w*_)?fused_.*_\d+$",  # inductor; TorchScript's fuser
            r"^CudaCodeGen::kernel|^nvfuser_|^kernel_?cpp_?\d",
        ),
    ),
    (
        WorkClass.COMM,
        (
            r"[nrxh]ccl|oneccl|msccl|hcom_|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv",
            r"cross_device_reduce|(one|two)_?shot|multimem_|deep_?ep|lamport|userbuffers",
        ),
    ),
    (WorkClass.NORM, (r"(rms|layer|group|batch|instance|qk)_?norm",)),
    (
        WorkClass.REDUCTION,
        (r"^(void )?(at::native::)?reduce_kernel<|LpNormFunctor|L2NormFunctor|lpnorm_cleanup",),
    ),
    # An embedding's backward may hold its optimizer, and bears its name.
    (
        WorkClass.EMBEDDING,
        (
            r"(split|dense|ssd)_embedding_|embedding_bag|bounds_check_indices|linearize_index|permute_pooled_embs",
            r"^(void )?(::)?(permute_(indices|1D|2D|data|lengths|embeddings)|_?offsets_range|block_bucketize|jagged_\w+_kernel)",
        ),
    ),
    # The keys and values of earlier tokens are copied where later ones find them.
    (
        WorkClass.ELEMENTWISE,
        (r"reshape_and_cache|(store|write|set|copy)_(to_)?kv_?cache|transform_bias_rescale_qkv",),
    ),
    (
        WorkClass.ATTENTION,
        (
            r"flash|fmha|attention|attn|mla_|_mha_|mha_fwd|mha_bwd|sdpa|sage_|(prefill|decode)with\w*KVCache",
            r"^bwd_(preprocess|kernel_(dk_dv|dq|dkdv|fuse))",
        ),
    ),
    (
        WorkClass.OPTIMIZER,
        (r"adam|adagrad|novograd|(?<![a-z])sgd|fused_?sgd|lamb(?!d)|optimizer",),
    ),
    (
        WorkClass.CONV,
        (
            r"conv(?!er[ts])|winograd|implicit_gemm|xdlops_|dgrad|wgrad|fprop|im2col|col2im|vol2col|col2vol|igemm|scudnn",
            r"nchwToNhwc|nhwcToNchw|CNHW2NCHW|NCHW2CNHW|miopenSp3|SubTensorOp|batched_transpose_\d|scalePackedTensor",
            r"fft[12]d_[rc]2[rc]_|flip_filter|pointwise_mult_and_sum_complex|Im2d2Col|Col2Im2d|Im3d2Col|Col2Im3d",
            r"cask\w*cudnn\w*::compute|cutlass\w*_cudnn|naive_conv",
        ),
    ),
    (
        WorkClass.NORM,
        (
            r"norm(?!al)|bn_(fw|bw)|welford|GammaBeta|RowwiseMoments|Compute(Backward)?FusedParams",
            r"ComputeInternalGradients|batch_norm",
        ),
    ),
    (WorkClass.ELEMENTWISE, (r"rotary|rope(?!rt)",)),  # it embeds a position, and looks nothing up
    (
        WorkClass.GEMM,
        (
            r"gemm|gemv|cutlass|cublas|Cijk_|nvjet|matmul|splitk|_mm_|wvSplitK|LLGemm|dot_kernel|bmm|ck::kernel_",
            r"grouped_mm|moe_kernel|fused_moe|marlin|machete|qmm_kernel",
        ),
    ),
    (
        WorkClass.EMBEDDING,
        (
            r"embedding|index_?select|gather_kernel|scatter_gather|index_(put|copy|add|fill)|gpu_index_kernel",
            r"indexing_backward|indexFunc|compute_grad_weight|krn_partial|sum_and_scatter|GatherV[23]|ScatterNd",
        ),
    ),
    (
        WorkClass.REDUCTION,
        (
            r"reduce(?!d)|softmax|cross_entropy|nll_loss|NLLCriterion|argm|topk|cumsum|sort|kernel_scan_|histogram",
            r"cub::(\w+::)*Device(Scan|Select|Compact|Partition|RunLength|Unique|Merge|Histogram)|wrapped_scan_config",
            r"lookback_scan|moe::dev::(routing|finalize)|moe_sum|moe_align|^_sum_",
        ),
    ),
    (
        WorkClass.ELEMENTWISE,
        (
            r"elementwise|vectorized|unrolled|CatArray|pointwise|distribution|copy|(?<!pre)fill|op_tensor|multi_?tensor",
            r"dropout|gelu|silu|swiglu|geglu|act_and_mul|transpose|triu_tril|tril_indices|arange|where|cast|upsample",
            r"pool|OpTensor|grid_sampler|roll_cuda|flip_cuda|_pad\dd|reflection_pad|replication_pad|chunk_cat",
            r"clamp|quantize|_memset$|^aclnn(Inplace)?(Add|Sub|Mul|Div)s?_|^(add|sub|mul|div)_\d+ Cmpt Exec$",
        ),
    ),
)

_PATTERNS = tuple((work, re.compile("|".join(parts), re.IGNORECASE)) for work, parts in KERNEL_NAMES)
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
    bare = _NOT_WORK.sub("", name)
    return next((work for work, pattern in _PATTERNS if pattern.search(bare)), WorkClass.KERNEL)
