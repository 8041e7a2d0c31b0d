"""What a kernel does, by its name: all that the GPU's own record says of it.

The names are those of torch, cuBLAS, cuDNN, CUTLASS, FlashAttention, Triton and the driver. The
first pattern that fits decides, so the particular ones stand before the general.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Work(StrEnum):
    COPY_IN = "copy to the GPU"
    COPY_OUT = "copy from the GPU"
    COPY = "copy on the GPU"
    FILL = "fill"
    COMMUNICATION = "communication"
    LAYOUT = "layout conversion"
    ATTENTION = "fused attention"
    CONVOLUTION = "convolution"
    PRODUCT = "matrix product"
    OPTIMIZER = "optimizer"
    FUSED = "fused by a compiler"
    NORMALISATION = "normalisation"
    SOFTMAX = "softmax"
    REDUCTION = "reduction"
    INDEXING = "indexing"
    POINTWISE = "pointwise"
    OTHER = "other"


BY_BANDWIDTH = frozenset(
    {Work.POINTWISE, Work.REDUCTION, Work.NORMALISATION, Work.SOFTMAX, Work.COPY}
)
"""Little arithmetic for every byte: how fast these are, the memory decides."""

_PATTERNS = (
    (Work.COPY_IN, r"Memcpy HtoD"),
    (Work.COPY_OUT, r"Memcpy DtoH"),
    (Work.COPY, r"Memcpy"),
    (Work.FILL, r"Memset"),
    (Work.COMMUNICATION, r"nccl"),
    (
        Work.LAYOUT,
        r"nchwToNhwc|nhwcToNchw|ncdhwTo|ToNcdhw|nchwAddPadding|nhwcAddPadding"
        r"|transpose_readWrite|tensorTransform|convertTensor|cudnn\S*transpose",
    ),
    (Work.ATTENTION, r"flash_(fwd|bwd)|fmha|sdpa|flash_attn|_attn_fwd|_attn_bwd|flex_attention"),
    (
        Work.CONVOLUTION,
        r"fprop|dgrad|wgrad|scudnn|[^a-z]conv(olve|2d|3d|_depthwise)|implicit_con|winograd"
        r"|fft2d|triton_tem_fused\w*convolution",
    ),
    (
        Work.PRODUCT,
        r"gemm|gemv|nvjet|splitK|cublas|triton_tem_fused\w*mm|^dot_kernel|cutlass.*Kernel2?<",
    ),
    (Work.OPTIMIZER, r"multi_tensor_apply|FusedAdam|FusedSgd|FusedAdagrad|multi_tensor_"),
    (Work.FUSED, r"^triton_"),
    (
        Work.NORMALISATION,
        r"layer_?norm|batch_?norm|group_?norm|instance_?norm|rms_?norm|RowwiseMoments"
        r"|GammaBeta|ComputeInternalGradients|GroupNorm|bn_(fw|bw)|bnorm",
    ),
    (Work.SOFTMAX, r"soft_?max"),
    (
        Work.INDEXING,
        r"index|gather|scatter|embedding|[rR]adixSort|sort|DeviceSelect|compute_grad_weight",
    ),
    (Work.REDUCTION, r"reduce|Reduce|DeviceScan|scan_|nll_loss|tensor_kernel_scan"),
    (
        Work.POINTWISE,
        r"elementwise|dropout|CatArray|fill|distribution_|copy_kernel|triu_tril|where|arange",
    ),
)
_COMPILED = tuple((work, re.compile(pattern, re.I)) for work, pattern in _PATTERNS)

_FORMATS = (
    ("tf32", r"tf32|tensorop_s1688|s1688gemm|s1688(fprop|dgrad|wgrad)|nvjet_(sm\d+_)?s(?!m\d)"),
    ("bfloat16", r"bf16|nvjet_(sm\d+_)?t|bfloat16"),
    ("float16", r"fp16|f16|nvjet_(sm\d+_)?h|h884|h1688|hgemm|__half|Half"),
    (
        "float32",
        r"sgemm|simt|ffma|scudnn|f32f32_f32f32|gemv.*float|gemmSN|dot_kernel|convolve_s"
        r"|engine<float|conv_depthwise\w*<float|_fp32|f32",
    ),
)
_COMPILED_FORMATS = tuple((name, re.compile(pattern)) for name, pattern in _FORMATS)


@lru_cache(maxsize=4096)
def work(name: str) -> Work:
    return next((kind for kind, pattern in _COMPILED if pattern.search(name)), Work.OTHER)


@lru_cache(maxsize=4096)
def number_format(name: str) -> str | None:
    """Of a product's or a convolution's operands. None: its name does not say.

    cuBLAS's nvjet kernels use tensor cores only, so those of float32 are in TF32.
    """
    return next((form for form, pattern in _COMPILED_FORMATS if pattern.search(name)), None)


def is_strided_copy(name: str) -> bool:
    """From one order in memory to another: torch copies what lies in a row by other kernels."""
    is_copy = "direct_copy_kernel" in name and "elementwise_kernel" in name
    return is_copy and not re.search(r"vectorized_|unrolled_|LoadWithCast", name)


def is_forward_softmax(name: str) -> bool:
    """Of weights, as attention has it, and not the logarithm, as a loss has it."""
    if re.search(r"LogSoftMax|log_softmax|Backward|backward", name):
        return False
    warp = re.search(r"softmax_warp_forward<(.*?)>", name)
    if warp:  # the fifth parameter: whether it is the logarithm
        parameters = [part.strip() for part in warp[1].split(",")]
        return len(parameters) < 5 or parameters[4] in ("false", "0")
    return work(name) is Work.SOFTMAX
