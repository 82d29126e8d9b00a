"""Kernel names from real traces, made short."""

from __future__ import annotations

import doctest
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stepcrit.report import bars, names, safe
from stepcrit.report.names import short_name, short_names
from stepcrit.report.safe import is_unsafe

REAL = [
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::exp_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
        "vectorized_elementwise_kernel<exp_kernel_cuda<BFloat16>>",
    ),
    (
        "void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int, bool)#1}>(int)",
        "elementwise_kernel_manual_unroll<MulFunctor<float>>",
    ),
    (
        "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::MeanOps<c10::BFloat16, float, float, c10::BFloat16>, unsigned int, c10::BFloat16, 4> >(at::native::ReduceOp<c10::BFloat16, at::native::MeanOps<c10::BFloat16, float, float, c10::BFloat16>, unsigned int, c10::BFloat16, 4>)",
        "reduce_kernel<MeanOps<BFloat16, float>>",
    ),
    (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 3, 128, 1>(float*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<float, unsigned int, 128, 1>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)",
        "CatArrayBatchedCopy<float, unsigned int, 3, 128, 1>",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2::Params)",
        "cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2",
    ),
    (
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float, float, float, float, float, adamMode_t, float, int, int>(int, int volatile*, TensorListMetadata<4>, AdamFunctor<float>, float)",
        "multi_tensor_apply_kernel<AdamFunctor<float>>",
    ),
    (
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float, false, true, false, false, 7, cublasGemvParams<cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float> >(cublasGemvParams<float>)",
        "gemvx::kernel<int, float, 7>",
    ),
    (
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, long)",
        "reshape_and_cache_flash_kernel<__hip_bfloat16>",
    ),
    (
        "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_AllGather_RING_LL",
    ),
    (
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_",
        "aiter::add_rmsnorm_quant_kernel",
    ),
    (
        "Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_LDSB0_AFC1_AFEM1",
        "Cijk_Ailk_Bjlk_BBS_…MT128x64x32_MI32x32x1…",
    ),
    ("autograd::engine::evaluate_function: AddmmBackward0", "evaluate_function: AddmmBackward0"),
    (
        "autograd::engine::evaluate_function: struct torch::autograd::AccumulateGrad",
        "evaluate_function: torch::autograd::AccumulateGrad",
    ),
    ("<built-in method full of type object at 0x7ce6c2c1df60>", "<built-in method full of type>"),
    # names that are already for people stay
    ("aten::add_", "aten::add_"),
    ("nccl:all_reduce", "nccl:all_reduce"),
    (
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    ),
    ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
    ("forward(batch 3)", "forward(batch 3)"),
    (
        "execute_32_context_0(sq0sk0)_generation_32(sq32sk32785)",
        "execute_32_context_0(sq0sk0)_generation_32(sq32sk32785)",
    ),
    ("torch/optim/optimizer.py(507): _group_tensors", "torch/optim/optimizer.py(507): _group_tensors"),
    ("", ""),
]


@pytest.mark.parametrize(("name", "short"), REAL)
def test_a_real_name_becomes(name: str, short: str) -> None:
    assert short_name(name, 80) == short


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        (REAL[0][0], 30, "exp_kernel_cuda<BFloat16>"),
        (REAL[4][0], 40, "cutlass_80_tensorop_bf16…x3_tn_align2"),
        (
            "/sgl/python/sglang/managers/schedule_batch.py(2406): filter_batch",
            45,
            "…/schedule_batch.py(2406): filter_batch",
        ),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", 20, "ampere_fp16_…x6_tn"),
    ],
)
def test_what_does_not_fit_loses_what_matters_least(name: str, width: int, short: str) -> None:
    made = short_name(name, width)
    assert cell_len(made) <= width
    assert made[:10] == short[:10]
    assert made[-4:] == short[-4:]


@given(st.text(max_size=200), st.integers(min_value=0, max_value=60))
def test_any_name_fits_and_is_safe(name: str, width: int) -> None:
    made = short_name(name, width)
    assert cell_len(made) <= width
    assert not any(is_unsafe(c) for c in made)


@given(st.lists(st.text("ab<>(), :", max_size=30), max_size=12), st.integers(min_value=8, max_value=40))
def test_different_names_get_different_labels_that_fit(given_names: list[str], width: int) -> None:
    labels = short_names(given_names, width)
    assert len(set(labels)) == len(set(given_names))
    assert all(cell_len(label) <= width for label in labels)


@pytest.mark.parametrize(
    "name",
    ["void " + "a<" * 50_000, "<" * 100_000, "x::" * 50_000, "f(" * 50_000, "/" * 100_000 + ".py(1): f"],
)
def test_a_hostile_name_costs_no_time(name: str) -> None:
    start = time.perf_counter()
    short_name(name, 40)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("module", [bars, names, safe])
def test_examples_in_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
