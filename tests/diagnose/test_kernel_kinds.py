"""Names as GPUs have recorded them."""

from __future__ import annotations

import pytest

from hotloop.diagnose.kernel_kinds import Work, is_forward_softmax, number_format, work

NATIVE = "void at::native::"
ANONYMOUS = f"{NATIVE}(anonymous namespace)::"

KINDS = [
    ("Memcpy HtoD (Pageable -> Device)", Work.COPY_IN),
    ("Memcpy HtoD (Pinned -> Device)", Work.COPY_IN),
    ("Memcpy DtoH (Device -> Pageable)", Work.COPY_OUT),
    ("Memcpy DtoD (Device -> Device)", Work.COPY),
    ("Memset (Device)", Work.FILL),
    (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        Work.COMMUNICATION,
    ),
    (
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true,"
        " (cudnnKernelDataType_t)2>(cudnn::ops::nchw2nhwc_params_t<float>, float const*, float*)",
        Work.LAYOUT,
    ),
    (
        "void cudnn::engines_precompiled::nhwcToNchwKernel<__half, __half, float, true, false,"
        " (cudnnKernelDataType_t)0>(cudnn::engines_precompiled::nhwc2nchw_params_t<float>)",
        Work.LAYOUT,
    ),
    (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>",
        Work.ATTENTION,
    ),
    (
        "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits>",
        Work.ATTENTION,
    ),
    (
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>)",
        Work.ATTENTION,
    ),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128",
        Work.ATTENTION,
    ),
    (
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4"
        "_warpsize2x2x1_g1_tensor16x8x8_execute_kernel__5x_cudnn",
        Work.CONVOLUTION,
    ),
    (
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_128x64_16x4"
        "_nhwc_align4>(cutlass_tensorop_s1688dgrad_optimized_tf32_128x64_16x4_nhwc_align4::Params)",
        Work.CONVOLUTION,
    ),
    ("ampere_scudnn_128x64_relu_interior_nn_v1", Work.CONVOLUTION),
    ("void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false>", Work.CONVOLUTION),
    (f"{ANONYMOUS}conv_depthwise2d_forward_kernel<3, float, int>", Work.CONVOLUTION),
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"
        "_execute_segment_k_off_kernel__5x_cublas",
        Work.PRODUCT,
    ),
    ("nvjet_tst_192x192_64x4_1x2_h_bz_coopA_NTT", Work.PRODUCT),
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>", Work.PRODUCT),
    ("ampere_sgemm_128x64_tn", Work.PRODUCT),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4>", Work.PRODUCT),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>", Work.PRODUCT),
    ("triton_tem_fused_addmm_relu_3", Work.PRODUCT),
    (
        f"{ANONYMOUS}multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
        "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
        "FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>",
        Work.OPTIMIZER,
    ),
    ("triton_poi_fused_add_gelu_mul_7", Work.FUSED),
    ("triton_per_fused_native_layer_norm_1", Work.FUSED),
    ("triton_red_fused__softmax_2", Work.FUSED),
    (f"{ANONYMOUS}vectorized_layer_norm_kernel<float, float>", Work.NORMALISATION),
    (f"{ANONYMOUS}GammaBetaBackwardCUDAKernel<float, float>", Work.NORMALISATION),
    (
        f"{NATIVE}batch_norm_collect_statistics_kernel<at::native::InvStd, float>",
        Work.NORMALISATION,
    ),
    (
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>",
        Work.NORMALISATION,
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>",
        Work.SOFTMAX,
    ),
    (
        f"{ANONYMOUS}cunn_SoftMaxForward<4, float, float, float,"
        " at::native::(anonymous namespace)::SoftMaxForwardEpilogue>",
        Work.SOFTMAX,
    ),
    (
        f"{NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::sum>>",
        Work.REDUCTION,
    ),
    (f"{ANONYMOUS}nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>", Work.REDUCTION),
    (
        f"{ANONYMOUS}indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>",
        Work.INDEXING,
    ),
    (f"{ANONYMOUS}embedding_backward_feature_kernel<float, float, long>", Work.INDEXING),
    (f"{NATIVE}index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>", Work.INDEXING),
    (
        f"{NATIVE}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
        " std::array<char*, 3ul> >",
        Work.POINTWISE,
    ),
    (
        f"{NATIVE}elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
        "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>>",
        Work.POINTWISE,
    ),
    (f"{NATIVE}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", Work.POINTWISE),
    (
        f"{ANONYMOUS}fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>",
        Work.POINTWISE,
    ),
    (f"{ANONYMOUS}CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>", Work.POINTWISE),
    (f"{ANONYMOUS}max_pool_forward_nchw<float, int>", Work.OTHER),
    ("my_own_kernel", Work.OTHER),
]


@pytest.mark.parametrize(("name", "expected"), KINDS)
def test_what_a_kernel_does(name: str, expected: Work) -> None:
    assert work(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ampere_sgemm_128x64_tn", "float32"),
        ("cutlass_80_simt_sgemm_256x128_8x4_nt_align1", "float32"),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma"
            "_aligna4_alignc4_execute_kernel__5x_cublas",
            "float32",
        ),
        ("ampere_scudnn_128x64_relu_interior_nn_v1", "float32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>", "tf32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_stage4", "tf32"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128", "tf32"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "bfloat16"),
        ("nvjet_tst_192x192_64x4_1x2_h_bz_coopA_NTT", "bfloat16"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", "float16"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_tn", "float16"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn", "bfloat16"),
        ("triton_tem_fused_mm_3", None),
    ],
)
def test_the_format_of_a_product(name: str, expected: str | None) -> None:
    assert number_format(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("softmax_warp_forward<float, float, float, 10, false, false>", True),
        ("softmax_warp_forward<float, float, float, 10, true, false>", False),
        ("softmax_warp_backward<float, float, float, 10, false, false>", False),
        ("cunn_SoftMaxForward<4, float, float, float, SoftMaxForwardEpilogue>", True),
        ("cunn_SoftMaxForward<4, float, float, float, LogSoftMaxForwardEpilogue>", False),
        ("vectorized_elementwise_kernel<4, add>", False),
    ],
)
def test_a_softmax_of_attention(name: str, expected: bool) -> None:
    assert is_forward_softmax(name) is expected
