"""What the built-in jobs compute and move, against what this machine was measured to do."""

from __future__ import annotations

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Outcome, Series
from hotloop.experiments.lab import Lab
from hotloop.study import Study

ON_GPU = (
    Case("ResNet-18, batch 64", "resnet:ResNet18", {"batch_size": 64}),
    Case("ResNet-50, batch 64", "resnet:ResNet50", {"batch_size": 64}),
    Case("GPT-2 124M, batch 8", "gpt:Gpt2", {"batch_size": 8, "attention": "fused"}),
    Case(
        "GPT-2 124M, bfloat16",
        "gpt:Gpt2",
        {"batch_size": 8, "attention": "fused", "precision": "bfloat16"},
    ),
    Case("3D UNet, 96³", "unet:UNet3d", {"batch_size": 2}),
)
ON_CPU = (
    Case("MLP, batch 1024", "mlp:MicrobatchMlp", {"batch_size": 1024, "microbatch": 0}),
    Case(
        "ResNet-18, small",
        "resnet:ResNet18",
        {"batch_size": 8, "size": 64, "width": 16, "classes": 10, "pool": 16},
    ),
    Case("tiny GPT", "gpt:TinyGpt", {"batch_size": 4}),
    Case("3D UNet, 24³", "unet:UNet3d", {"volume": 24, "width": 8, "levels": 3, "pool": 4}),
)


class Flops(Experiment):
    name = "flops"
    summary = "FLOPs, their share of the measured roof (MFU), memory bandwidth, intensity"

    def run(self, lab: Lab) -> Outcome:
        cases = ON_GPU if lab.on_gpu else ON_CPU
        records = [(case, lab.profiled(case)) for case in cases]
        return Outcome(
            self.name,
            "Arithmetic against the roof",
            lab.where,
            ("job", "FLOP a step", "FLOP/s", "of the roof", "bandwidth", "FLOP a byte"),
            tuple(_row(case, record) for case, record in records),
            _figure(records),
            _notes(records),
            data={case.label: _numbers(record) for case, record in records},
        )


def _numbers(record: Study) -> dict[str, float | None]:
    found = record.diagnosis.numbers if record.diagnosis else None
    names = ("flops_step", "flops_second", "mfu_measured", "mfu_datasheet",
             "bandwidth_utilisation", "intensity", "gpu_busy")  # fmt: skip
    return {name: getattr(found, name) if found else None for name in names}


def _row(case: Case, record: Study) -> tuple[str, ...]:
    found = _numbers(record)
    return (
        case.label,
        words.number(found["flops_step"], 3),
        words.number(found["flops_second"], 3),
        words.percent(found["mfu_measured"]),
        words.percent(found["bandwidth_utilisation"]),
        words.number(found["intensity"], 3),
    )


def _figure(records: list[tuple[Case, Study]]) -> Figure:
    shares = [(case.label, _numbers(record)["mfu_measured"]) for case, record in records]
    points = tuple((label, 100 * share) for label, share in shares if share is not None)
    title = "Share of the roof that was measured here; half is good for training"
    return Figure("bars", title, "%", (Series("of the roof", points),))


def _notes(records: list[tuple[Case, Study]]) -> tuple[str, ...]:
    failed = [
        f"{case.label}: {record.trials[0].reason}"
        for case, record in records
        if record.diagnosis is None
    ]
    verdicts = [
        f"{case.label}: {record.diagnosis.verdict}" for case, record in records if record.diagnosis
    ]
    return (*failed, *verdicts)
