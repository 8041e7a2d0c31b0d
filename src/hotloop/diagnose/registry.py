"""Every rule, listed by hand."""

from __future__ import annotations

from hotloop.diagnose.base import Rule
from hotloop.diagnose.rules.allocator_thrash import allocator_thrash
from hotloop.diagnose.rules.anomaly_detection import anomaly_detection
from hotloop.diagnose.rules.at_the_roof import at_the_roof
from hotloop.diagnose.rules.between_passes import between_passes
from hotloop.diagnose.rules.broken_loss import broken_loss
from hotloop.diagnose.rules.checkpointing import checkpointing
from hotloop.diagnose.rules.dense_embedding import dense_embedding
from hotloop.diagnose.rules.double_precision import double_precision
from hotloop.diagnose.rules.empty_cache import empty_cache
from hotloop.diagnose.rules.evaluation import evaluation
from hotloop.diagnose.rules.evaluation_with_gradients import evaluation_with_gradients
from hotloop.diagnose.rules.fp32_matmul import fp32_matmul
from hotloop.diagnose.rules.frozen_model import frozen_model
from hotloop.diagnose.rules.growing_memory import growing_memory
from hotloop.diagnose.rules.handwritten_attention import handwritten_attention
from hotloop.diagnose.rules.launch_bound import launch_bound
from hotloop.diagnose.rules.layout_conversions import layout_conversions
from hotloop.diagnose.rules.memory_bandwidth import memory_bandwidth
from hotloop.diagnose.rules.memory_capacity import memory_capacity
from hotloop.diagnose.rules.microbatches import microbatches
from hotloop.diagnose.rules.model_on_cpu import model_on_cpu
from hotloop.diagnose.rules.optimizer_bound import optimizer_bound
from hotloop.diagnose.rules.pageable_copies import pageable_copies
from hotloop.diagnose.rules.python_loop import python_loop
from hotloop.diagnose.rules.recompilation import recompilation
from hotloop.diagnose.rules.short_last_batch import short_last_batch
from hotloop.diagnose.rules.side_work import side_work
from hotloop.diagnose.rules.swapping import swapping
from hotloop.diagnose.rules.synchronisation import synchronisation
from hotloop.diagnose.rules.tiny_batch import tiny_batch
from hotloop.diagnose.rules.too_few_threads import too_few_threads
from hotloop.diagnose.rules.too_many_threads import too_many_threads
from hotloop.diagnose.rules.unused_gradients import unused_gradients
from hotloop.diagnose.rules.waiting_for_data import waiting_for_data

RULES: tuple[Rule, ...] = (
    waiting_for_data,
    model_on_cpu,
    pageable_copies,
    synchronisation,
    python_loop,
    microbatches,
    tiny_batch,
    launch_bound,
    memory_bandwidth,
    fp32_matmul,
    double_precision,
    handwritten_attention,
    layout_conversions,
    optimizer_bound,
    recompilation,
    anomaly_detection,
    unused_gradients,
    dense_embedding,
    short_last_batch,
    too_many_threads,
    too_few_threads,
    swapping,
    empty_cache,
    allocator_thrash,
    memory_capacity,
    growing_memory,
    evaluation,
    evaluation_with_gradients,
    checkpointing,
    side_work,
    between_passes,
    frozen_model,
    broken_loss,
    at_the_roof,
)
