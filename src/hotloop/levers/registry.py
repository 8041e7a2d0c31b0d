"""The optimisations hotloop can apply, as an explicit list: importing a file registers nothing."""

from __future__ import annotations

from hotloop.levers.affinity import Affinity
from hotloop.levers.allocator import Allocator
from hotloop.levers.base import Lever
from hotloop.levers.batch_size import BatchSize
from hotloop.levers.bf16 import Bf16
from hotloop.levers.cache_dataset import CacheDataset
from hotloop.levers.channels_last import ChannelsLast
from hotloop.levers.checkpoint_blocks import CheckpointBlocks
from hotloop.levers.chunked_loss import ChunkedLoss
from hotloop.levers.compile import Compile
from hotloop.levers.compile_blocks import CompileBlocks
from hotloop.levers.compile_loss import CompileLoss
from hotloop.levers.context_length import ContextLength
from hotloop.levers.cudnn_benchmark import CudnnBenchmark
from hotloop.levers.device_prefetch import DevicePrefetch
from hotloop.levers.folded_pixels import FoldedPixels
from hotloop.levers.fp8 import Fp8
from hotloop.levers.fp16 import Fp16
from hotloop.levers.fused_attention import FusedAttention
from hotloop.levers.fused_optimizer import FusedOptimizer
from hotloop.levers.fused_upsampling import FusedUpsampling
from hotloop.levers.gpu_augment import GpuAugment
from hotloop.levers.loader_workers import LoaderWorkers
from hotloop.levers.microbatch import Microbatch
from hotloop.levers.model_graph import ModelGraph
from hotloop.levers.pin_memory import PinMemory
from hotloop.levers.sdpa_backend import SdpaBackend
from hotloop.levers.shape_padding import ShapePadding
from hotloop.levers.stage_data import StageData
from hotloop.levers.step_graph import StepGraph
from hotloop.levers.tf32 import Tf32
from hotloop.levers.threads import Threads
from hotloop.levers.unused_outputs import UnusedOutputs
from hotloop.levers.update_graph import UpdateGraph

_ALL: tuple[type[Lever], ...] = (
    Allocator,
    Affinity,  # before the threads: it counts them by its cores, they have the last word
    Threads,
    LoaderWorkers,
    PinMemory,
    DevicePrefetch,  # after the pinning, which it needs and otherwise does itself
    StageData,  # before the cache, which is filled from what is staged
    CacheDataset,  # after the workers: those need no filling
    GpuAugment,
    BatchSize,
    ContextLength,
    Microbatch,  # after the batch: its passes are parts of that
    Tf32,
    Bf16,
    Fp16,
    ChannelsLast,
    CudnnBenchmark,
    SdpaBackend,
    ModelGraph,  # before compiling, which takes longer and does its work too
    Compile,
    CompileBlocks,
    UnusedOutputs,
    FusedAttention,
    FusedUpsampling,
    FoldedPixels,
    Fp8,  # before the padding: it takes products of whole tiles alone
    ShapePadding,  # after the attention, whose products it would hide
    CompileLoss,
    FusedOptimizer,
    UpdateGraph,  # after the fused one, which it needs and otherwise switches on itself
    ChunkedLoss,
    CheckpointBlocks,
    StepGraph,  # last: what it captures is what all others have made of the step
)

LEVERS: dict[str, type[Lever]] = {lever.name: lever for lever in _ALL}
