"""The class of work of every row, against what a human reader of the name would say."""

from __future__ import annotations

from typing import Any

import pytest

from stepcrit.link.classify import kernel_class
from stepcrit.link.linker import link
from stepcrit.model.classes import WorkClass
from tests.builders import trace

Event = dict[str, Any]

# Names as real traces have them (some cut after the part that says what the kernel is).
NAMES = {
    "comm": [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)",
        "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "void aiter::cross_device_reduce_1stage<__hip_bfloat16, 8>(aiter::RankData*)",
    ],
    "gemm": [
        "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn",
        "ampere_fp16_sgemm_fp16_32x128_tn",
        "nvjet_sm103_tst_32x64_64x16_4x1_v_bz_splitK_TNN",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_tensor16x8x16_kernel",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x5_nt_align4>(cutlass_80_tensorop_s1688gemm_128x128_32x5_nt_align4::Params)",
        "Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT64x288x64_MI16x16x1_SN_LDSB1",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x128x64_MI16x16x1_SN_LDSB1_AFC1",
        "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float> > >",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, cublasGemvParams>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, true, false>",
        "triton_tem_fused_addmm_12",
        "triton_mm",
    ],
    "conv": [
        "void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, __nv_bfloat16, float, true, false>",
        "void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int, int, int, float const*)",
        "volta_scudnn_128x64_relu_interior_nn_v1",
        "_5x_cudnn_ampere_fp16_scudnn_fp16_128x32_relu_small_nn_v1",
        "igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt64x64x64_wt16x16x16_ws1x1_wr2x2",
        "void fft2d_c2r_16x16<float, false>(float*, float2*, int, int, int)",
        "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(cudnn::winograd::GenerateWinogradTilesParams<float, float>)",
        "_ZN2ck16tensor_operation6device12_GLOBAL__N_149kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleINS_34",
        "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, false, true>",
        "void cudnn::cnn::wgrad2d_grouped_direct_kernel<__half, float, int, float, float, int, 3>",
        "void at::native::im2col_kernel<float>(long, float const*, long, long)",
    ],
    "attention": [
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>>",
        "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8>>",
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, cutlass::arch::Sm80, true>::Params)",
        "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKvCgaVarSeqQ8Kv128StaticSwapsAbForGen",
        "kernel_unified_attention_2d",
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16>",
        "attn_fwd",
        "aiter::fmha_fwd_hd128_bf16_rtz",
        "sage_fwd",
    ],
    "norm": [
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true, 1, true>(cudnnTensorStruct, float const*)",
        "MIOpenBatchNormBwdSpatial",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float, float const*)",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel1<float>(long, long, long, float const*)",
        "void at::native::batch_norm_collect_statistics_kernel<at::native::Var, float, float, float, int>",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_27Rmsnorm2dFwdPipelineProblem",
        "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long, float, float const*, float*, float*)",
    ],
    "reduction": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<int, at::native::ArgMaxOps<int>, unsigned int, long, 4, 4> >",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int, int, int)",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16>",
        "void at::native::(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d<float, long>(float*, float*, long*)",
        "void cub::DeviceRadixSortHistogramKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false, long, int>",
        "aiter::topksoftmax_4x128x8_bf16",
        "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*, int*, cub::ScanTileState<int, true>, cub::Sum>",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)",
        "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >",
        "void at::native::(anonymous namespace)::upsample_nearest1d_out_frame<c10::BFloat16, &at::native::nearest_neighbor_compute_source_index>",
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
        "void (anonymous namespace)::fused_rope_store_kernel<true, 128l, true, __nv_bfloat16, long, 16u>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 3>",
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>",
    ],
    "embedding": [
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>",
        "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>",
        "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 5ul>",
        "void split_embedding_backward_codegen_rowwise_adagrad_weighted_kernel_cta_per_row_1<float, float, float, 1ul>",
        "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>",
    ],
    "compiled": [
        "triton_red_fused_add_addmm_mul_native_layer_norm_split_unsqueeze_view_29",
        "triton_poi_fused_addmm_gelu_view_26",
        "triton_per_fused__to_copy_addmm_mean_pow_view_8",
        "triton_poi_fused_silu_29",
    ],
    "optimizer": [
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float, float, float>",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>>",
    ],
    "other kernel": [
        "void at::native::roll_cuda_kernel<float>(float*, float*, long, long, long, long, long, long)",
        "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>((anonymous namespace)::StoreKVCacheParams)",
        "my_own_kernel(float*)",
        "",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("label", "name"), [(label, name) for label, names in NAMES.items() for name in names]
)
def test_kernel_is_what_a_human_reader_would_call_it(label: str, name: str) -> None:
    assert kernel_class(name).label == label


def test_table_has_at_least_sixty_real_names() -> None:
    assert sum(map(len, NAMES.values())) >= 60


def event(cat: str, name: str, span: tuple[int, int], **args: Any) -> Event:
    side = {"pid": 0, "tid": 7} if cat in ("kernel", "gpu_memcpy", "gpu_memset") else {"pid": 1, "tid": 1}
    return {"cat": cat, "name": name, "ts": span[0], "dur": span[1] - span[0], **side, "args": args}


def classes(*chrome: Event) -> dict[str, WorkClass]:
    """The class of each row by name."""
    raw = trace(chrome)
    work = link(raw).work
    return {raw.events.name_of(row): WorkClass(int(work[row])) for row in range(len(raw.events))}


def test_collective_arguments_beat_the_name() -> None:
    found = classes(
        event("kernel", "gemm_of_ours", (0, 9), **{"Collective name": "allreduce"}),
        event("kernel", "gemm", (9, 12)),
    )
    assert found == {"gemm_of_ours": WorkClass.COMM, "gemm": WorkClass.GEMM}


def test_kind_of_activity_beats_the_name() -> None:
    found = classes(event("gpu_memcpy", "gemm copy", (0, 9)), event("gpu_memset", "nccl memset", (9, 12)))
    assert found == {"gemm copy": WorkClass.MEMCPY, "nccl memset": WorkClass.MEMSET}


def test_what_the_optimizer_launches_is_optimizer_work_unless_it_communicates_or_copies() -> None:
    found = classes(
        event("user_annotation", "Optimizer.step#Adam.step", (0, 50)),
        event("cpu_op", "aten::mul_", (1, 40)),
        *(event("cuda_runtime", f"call{i}", (2 * i, 2 * i + 1), correlation=i) for i in range(1, 5)),
        event("cuda_runtime", "later", (60, 61), correlation=9),
        event("kernel", "void at::native::vectorized_elementwise_kernel<4>", (60, 61), correlation=1),
        event("kernel", "ncclDevKernel_AllGather_RING_LL", (61, 62), correlation=2),
        event("kernel", "by_metadata", (62, 63), correlation=3, **{"Collective name": "allgather"}),
        event("gpu_memcpy", "Memcpy DtoD", (63, 64), correlation=4),
        event("kernel", "void at::native::vectorized_elementwise_kernel<2>", (70, 71), correlation=9),
    )
    assert found["void at::native::vectorized_elementwise_kernel<4>"] == WorkClass.OPTIMIZER
    assert found["void at::native::vectorized_elementwise_kernel<2>"] == WorkClass.ELEMENTWISE
    assert found["ncclDevKernel_AllGather_RING_LL"] == found["by_metadata"] == WorkClass.COMM
    assert found["Memcpy DtoD"] == WorkClass.MEMCPY
    assert found["aten::mul_"] == found["Optimizer.step#Adam.step"] == WorkClass.OPTIMIZER_HOST


def test_host_rows_are_what_they_are_in_before_what_they_are_called() -> None:
    found = classes(
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", (0, 20)),
        event("cpu_op", "aten::stack", (2, 9)),
        event("cpu_op", "aten::mm", (21, 29)),
        event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", (30, 40)),
        event("user_annotation", "nccl:all_reduce", (41, 45)),
        event("cpu_op", "c10d::allreduce_", (46, 49)),
        event("user_annotation", "gloo:broadcast", (50, 52)),
        event("cpu_op", "record_param_comms", (53, 54)),
    )
    assert found == {
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": WorkClass.INPUT,
        "aten::stack": WorkClass.INPUT,
        "aten::mm": WorkClass.HOST,
        "Optimizer.zero_grad#SGD.zero_grad": WorkClass.OPTIMIZER_HOST,
        "nccl:all_reduce": WorkClass.COMM_HOST,
        "c10d::allreduce_": WorkClass.COMM_HOST,
        "gloo:broadcast": WorkClass.COMM_HOST,
        "record_param_comms": WorkClass.COMM_HOST,
    }


def test_runtime_calls_are_launches_waits_or_plain_calls() -> None:
    found = classes(
        event("cuda_runtime", "cudaLaunchKernel", (0, 2), correlation=1),
        event("cuda_runtime", "nobodyKnowsThisOne", (3, 4), correlation=2),
        event("cuda_runtime", "cudaDeviceSynchronize", (5, 6)),
        event("cuda_runtime", "hipStreamSynchronize", (7, 8)),
        event("cuda_runtime", "cudaMalloc", (9, 10)),
        event("cuda_runtime", "cudaMemcpyAsync", (11, 12)),
        event("kernel", "k", (20, 21), correlation=2),
    )
    assert found == {
        "cudaLaunchKernel": WorkClass.LAUNCH,
        "nobodyKnowsThisOne": WorkClass.LAUNCH,
        "cudaDeviceSynchronize": WorkClass.SYNC,
        "hipStreamSynchronize": WorkClass.SYNC,
        "cudaMalloc": WorkClass.RUNTIME,
        "cudaMemcpyAsync": WorkClass.LAUNCH,
        "k": WorkClass.KERNEL,
    }


def test_every_class_has_a_label_of_its_own_and_a_group() -> None:
    assert len({work.label for work in WorkClass}) == len(WorkClass)
    assert {work.group for work in WorkClass} == {"compute", "comm", "copy", "host", "gap"}
