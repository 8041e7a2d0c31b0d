from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.figures import figures
from hotloop.measurement import Inventory, Kind, Losses, Measurement, Memory, Precision, Software
from hotloop.report.profile_rows import PhaseRow, ProfileRows, already_well, rows
from hotloop.trial.trial import Shielding
from tests.builders import GPU, Log, loader, measurement, model, on_gpu, optimizer, training


def told(made: Measurement, shielding: Shielding | None = None) -> ProfileRows:
    found = figures(made)
    assert found is not None
    return rows(made, found, shielding or Shielding())


def facts(found: ProfileRows, label: str) -> list[str]:
    return [text for name, text in found.facts if name == label]


def said(phases: tuple[PhaseRow, ...]) -> list[str]:
    """However it is aligned."""
    return [" ".join(f"{row.name} {row.text}".split()) for row in phases]


def gpu_job(**changes: Any) -> Measurement:
    events = training().events
    kinds = (Kind.BACKWARD_BEGIN, Kind.BACKWARD_END, Kind.OPTIMIZER_BEGIN, Kind.OPTIMIZER_END)
    memory = Memory(
        host_peak=2 * 2**30,
        device_peak_allocated=3 * 2**30,
        device_peak_reserved=4 * 2**30,
        device_total=141 * 2**30,
        worker_peaks=[300 * 2**20, 200 * 2**20],
    )
    made = measurement(
        events,
        software=Software("3.12.1", "2.11.0", GPU),
        gpu=on_gpu(events, *kinds),
        memory=memory,
    )
    return replace(made, **changes)


def test_of_a_job_on_the_cpu() -> None:
    found = told(measurement())
    assert found.headline == ("400 samples/s", "50 batches/s", "an epoch in 2.00 s")
    assert found.step[0].startswith("20.0 ms ± ")
    assert found.step[-1] == "19 steps after 1 of warm-up"
    assert said(found.phases) == [
        "waiting for data 20.0% 4.00 ms",
        "forward and loss 25.0% 5.00 ms",
        "backward 40.0% 8.00 ms",
        "optimizer 15.0% 3.00 ms",
        "unaccounted for 0.0% 0 µs",
    ]
    assert found.gpu_phases == ()
    assert facts(found, "memory") == ["host 512 MiB"]
    assert facts(found, "model") == ["Net, 12,345 parameters, float32 on cpu"]
    assert facts(found, "optimizer") == ["AdamW over 12,345 parameters"]
    assert facts(found, "loader") == ["Digits, 800 samples, batch 8, 2 workers, shuffled"]
    assert facts(found, "precision") == ["no autocast"]
    assert found.already == ("loads data in workers",)


def test_what_is_alike_is_told_once() -> None:
    """Keras builds loaders for every pass."""
    made = measurement()
    loaders = [*made.inventory.loaders * 3, replace(made.inventory.loaders[0], shuffled=False)]
    found = told(replace(made, inventory=replace(made.inventory, loaders=loaders)))
    assert facts(found, "loader") == [
        "3 × Digits, 800 samples, batch 8, 2 workers, shuffled",
        "Digits, 800 samples, batch 8, 2 workers",
    ]


def test_of_a_job_on_the_gpu() -> None:
    found = told(gpu_job())
    assert said(found.gpu_phases) == [
        "waiting for data 20.0% 4.00 ms",
        "forward and loss 25.0% 5.00 ms",
        "backward 40.0% 8.00 ms",
        "optimizer 15.0% 3.00 ms",
    ]
    assert facts(found, "memory") == [
        "GPU 3.0 GiB of 141 GiB (4.0 GiB reserved) · host 2.0 GiB · 2 child processes up to 300 MiB"
    ]
    assert facts(found, "precision") == ["no autocast, TF32 in matrix products off, in cuDNN off"]


def test_the_unknown_is_left_out_or_named() -> None:
    log = Log()
    for _ in range(20):
        log.forward(5).backward(12).optimizer(3)
    found = told(measurement(log.events, memory=Memory(), inventory=Inventory()))
    assert found.headline == ("50 batches/s",)
    assert facts(found, "memory") == ["unknown"]
    assert facts(found, "loss") == ["none seen"]
    assert facts(found, "loader") == ["none: the script draws its batches by hand"]
    assert facts(found, "optimizer") == ["none stepped: a backward pass counts as a step"]
    assert facts(found, "model") == ["none seen: samples are not counted"]
    with_loader = told(measurement(inventory=Inventory(loaders=[loader()])))
    assert facts(with_loader, "model") == ["none seen"]
    assert facts(found, "warm-up") == facts(found, "pauses") == facts(found, "note") == []


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (Memory(device_peak_allocated=2**30), "GPU 1.0 GiB"),
        (Memory(device_peak_allocated=2**30, device_total=2**33), "GPU 1.0 GiB of 8.0 GiB"),
        (Memory(host_peak=2**30), "host 1.0 GiB"),
        (Memory(device_total=2**33), "unknown"),
        (
            Memory(host_peak=2**30, children_peak=2**31, worker_peaks=[2**31, 2**31]),
            "host 3.0 GiB (1.0 GiB of the script, 2.0 GiB of child processes)",
        ),
        (Memory(host_peak=2**30, children_peak=0), "host 1.0 GiB"),
        (Memory(host_peak=2**30, children_peak=2**18, worker_peaks=[2**22]), "host 1.0 GiB"),
        (  # of a hotloop that did not ask what they share
            Memory(host_peak=2**30, worker_peaks=[2**31, 2**31]),
            "host 1.0 GiB · 2 child processes up to 2.0 GiB",
        ),
    ],
)
def test_unknown_memory_is_never_zero(known: Memory, text: str) -> None:
    assert facts(told(gpu_job(memory=known)), "memory") == [text]


def test_a_single_worker_is_one_worker() -> None:
    found = told(measurement(inventory=Inventory(loaders=[loader(workers=1)])))
    assert facts(found, "loader") == ["Digits, 800 samples, batch 8, 1 worker, shuffled"]


def test_a_loader_of_unknown_length_says_nothing_of_it() -> None:
    unknown = loader(samples=None, batches=None, batch_size=None, dataset="Stream")
    found = told(measurement(inventory=Inventory(loaders=[unknown])))
    assert facts(found, "loader") == ["Stream, 2 workers, shuffled"]
    assert not any("epoch" in part for part in found.headline)


def test_a_dataset_of_batches_is_told_in_those() -> None:
    whole = loader(samples=50, batches=50, batch_size=None, workers=0)
    found = told(measurement(inventory=Inventory(loaders=[whole])))
    assert facts(found, "loader") == ["Digits, 50 batches, 0 workers, shuffled"]


def test_a_loader_of_its_own_class_is_named_after_it() -> None:
    found = told(measurement(inventory=Inventory(loaders=[loader(name="GraphLoader")])))
    assert facts(found, "loader")[0].startswith("GraphLoader, ")


def test_a_one_off_cost_is_told_with_what_compiled() -> None:
    made = measurement(training(40, first=3000).events, compile_seconds=2.5)
    assert facts(told(made), "warm-up") == ["cost 3.00 s once, 2.50 s of it compiling"]
    more = replace(made, compile_seconds=4.5)  # some of it somewhere else: nobody saw where
    assert facts(told(more), "warm-up") == ["cost 3.00 s once, 3.00 s of it compiling"]
    made = replace(made, compile_seconds=None)
    assert facts(told(made), "warm-up") == ["cost 3.00 s once"]


def test_pauses_are_told() -> None:
    log = training(20).no_grad(100)
    for _ in range(20):
        log.step()
    text = facts(told(measurement(log.events)), "pauses")[0]
    assert text.startswith("1 × evaluation or sampling, 100.0 ms, 11.1% of the run and its warm-up")


def test_a_second_optimizer_that_takes_over_is_told() -> None:
    first = training(40)
    assert facts(told(measurement(first.events)), "note") == []
    (note,) = facts(told(measurement(first.backward(900).optimizer(600, key=1).events)), "note")
    assert note.startswith("another 1.50 s passed after the last of these steps")
    turns = Log()
    for _ in range(8):
        turns.forward(5, 8).backward(8).optimizer(3).backward(8).optimizer(3, key=1)
    turns.forward(5, 8).backward(8).optimizer(3)
    assert facts(told(measurement(turns.events)), "note") == []


def test_losses_and_what_was_not_finite() -> None:
    events = training().events
    begins = [i for i, kind in enumerate(events.kind) if kind == Kind.BACKWARD_BEGIN][:3]
    losses = Losses(begins, [2.34567, None, 0.5], not_finite=1)
    assert facts(told(measurement(events, losses=losses)), "loss") == ["2.346 → 0.5 · 1 not finite"]


def test_frozen_parameters_and_parameter_groups() -> None:
    inventory = Inventory(
        models=[model(trainable=345, dtypes=["bfloat16", "float32"], devices=["cuda:0"])],
        optimizers=[optimizer(groups=2, fused=True), optimizer(name="SGD", foreach=True)],
    )
    found = told(measurement(inventory=inventory))
    assert facts(found, "model") == [
        "Net, 12,345 parameters (12,000 frozen), bfloat16+float32 on cuda:0"
    ]
    assert facts(found, "optimizer") == [
        "AdamW over 12,345 parameters, 2 groups, fused",
        "SGD over 12,345 parameters, foreach",
    ]


def test_lost_events_are_admitted() -> None:
    assert facts(told(measurement(lost_events=1234)), "note") == ["1,234 events were not kept"]


def test_what_was_kept_apart_is_named() -> None:
    kept = tuple(f"out/{number}.pt" for number in range(5))
    found = told(measurement(), Shielding(way="overlay", kept_apart=kept))
    text = facts(found, "shielded")[0]
    assert text.startswith("out/0.pt, out/1.pt, out/2.pt and 2 more: ")
    assert facts(told(measurement(), Shielding(way="overlay")), "shielded") == []


class TestAlreadyWell:
    def test_names_what_the_script_has_set_itself(self) -> None:
        inventory = Inventory(
            models=[model(compiled=True, channels_last=True)],
            optimizers=[optimizer(fused=True)],
            loaders=[loader(persistent=True, pinned=True)],
            precision=Precision(autocast="bfloat16", tf32_matmul=True, cudnn_benchmark=True),
        )
        assert already_well(gpu_job(inventory=inventory)) == (
            "loads data in workers",
            "keeps its workers alive",
            "pins batches",
            "autocast in bfloat16",
            "matrix products in TF32",
            "cuDNN chooses its fastest kernels",
            "torch.compile",
            "channels_last",
            "fused optimizer",
        )

    def test_what_means_nothing_on_a_cpu_is_no_merit_there(self) -> None:
        inventory = Inventory(
            loaders=[loader(workers=0, pinned=True)],
            precision=Precision(tf32_matmul=True, cudnn_benchmark=True),
        )
        assert already_well(measurement(inventory=inventory)) == ()

    def test_autocast_to_full_precision_is_none(self) -> None:
        inventory = Inventory(precision=Precision(autocast="float32"))
        assert already_well(gpu_job(inventory=inventory)) == ()
