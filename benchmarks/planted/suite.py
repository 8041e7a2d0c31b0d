"""Which planted job is limited by what: the answers that a diagnosis is held to. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
MARKER = "# planted"
"""Ends the source line that a finding must point at."""


@dataclass(frozen=True)
class Planted:
    name: str
    rule: str
    """The finding that must stand first; empty: nothing is to be found."""
    where: str = "cpu"
    """The least that it needs: cpu, or gpu."""
    cause: str = ""
    """Inside `waiting_for_data`."""
    arguments: tuple[str, ...] = ()
    unit: str = "step"
    """What the true gain is counted by: step, or sample where the fix changes the batch."""
    marked: str = ""
    """The file with the marked line, where that is not the script itself."""
    wins_time: bool = True
    """Whether the fix makes steps faster, or only keeps the job from running out of memory."""

    @property
    def script(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def source(self) -> Path:
        return FOLDER / self.marked if self.marked else self.script

    @property
    def line(self) -> int | None:
        """The number of the marked line. None: a control, where nothing is planted."""
        lines = self.source.read_text(encoding="utf-8").splitlines()
        return next((n for n, line in enumerate(lines, 1) if line.endswith(MARKER)), None)


def _data(cause: str) -> Planted:
    return Planted(cause, "waiting_for_data", cause=cause)


def _gpu(name: str, rule: str, marked: str = "") -> Planted:
    return Planted(name, rule, where="gpu", marked=marked)


SUITE = (
    _data("decoding"),
    _data("augmentation"),
    _data("tokenisation"),
    _data("collation"),
    _data("storage"),
    _data("worker_start"),
    _data("too_few_workers"),
    _data("slow_item"),
    Planted("loss_by_sample", "python_loop"),
    Planted("returns_by_time", "python_loop"),
    Planted("one_by_one", "microbatches"),
    Planted("many_parameters", "optimizer_bound"),
    Planted("frequent_evaluation", "evaluation"),
    Planted("frequent_checkpoints", "checkpointing"),
    Planted("validation_graph", "evaluation_with_gradients"),
    Planted("running_total", "growing_memory", wins_time=False),
    # Inductor takes seconds a graph on a small machine; tracing alone shows the same thing.
    Planted("growing_lengths", "recompilation", arguments=("--backend", "aot_eager")),
    Planted("many_threads", "too_many_threads"),
    Planted("one_thread", "too_few_threads"),
    Planted("attention_by_hand", "handwritten_attention"),
    Planted("last_batch", "short_last_batch", unit="sample"),
    Planted("two_at_a_time", "tiny_batch", unit="sample"),
    Planted("written_weights", "side_work", marked="library/journal.py"),
    Planted("collected_garbage", "side_work"),
    Planted("copied_average", "side_work"),
    Planted("watched_layers", "side_work"),
    Planted("looked_for_nan", "anomaly_detection"),
    Planted("numpy_numbers", "double_precision"),
    Planted("unfrozen_backbone", "unused_gradients"),
    Planted("item_table", "dense_embedding"),
    Planted("recurrent_cell", "python_loop"),
    Planted("another_iterator", "waiting_for_data", cause="new_iterator"),
    Planted("control_cpu", ""),
    _gpu("forgotten_on_cpu", "model_on_cpu"),
    _gpu("plain_copies", "pageable_copies"),
    _gpu("item_by_item", "synchronisation"),
    _gpu("printed_tensor", "synchronisation"),
    _gpu("tensor_condition", "synchronisation"),
    _gpu("counted_rows", "synchronisation"),
    _gpu("library_metric", "synchronisation", marked="library/metrics.py"),
    _gpu("small_kernels", "launch_bound"),
    _gpu("long_chains", "memory_bandwidth"),
    _gpu("full_precision", "fp32_matmul"),
    _gpu("mixed_layouts", "layout_conversions"),
    _gpu("emptied_cache", "empty_cache"),
    _gpu("changing_sizes", "allocator_thrash"),
    _gpu("control_gpu", ""),
)
