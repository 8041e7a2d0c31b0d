from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from hotloop import codec
from hotloop.diagnose.base import Effort, Finding
from hotloop.diagnose.checklist import Point, Status
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.footprint import Footprint
from hotloop.diagnose.numbers import Numbers
from hotloop.inspection import Frame
from hotloop.report.diagnosis_console import show_diagnosis
from hotloop.report.diagnosis_rows import MOST_FINDINGS, place, plain, rows
from hotloop.report.number_rows import number_rows

LINE = Frame("/job/lib/train.py", 57, "main", True, "total += loss.item()")
FOUND = Finding(
    rule="synchronisation",
    title="train.py:57 makes the GPU wait",
    share=0.25,
    remedy="Read it now and then.",
    effort=Effort.LINES,
    evidence=("3 times a step", "one", "two", "three"),
    places=(LINE,),
    levers=("compile",),
)
REMARK = replace(FOUND, rule="growing_memory", title="Memory grows", is_limit=False, levers=())
DIAGNOSIS = Diagnosis(
    verdict="It waits.",
    findings=(FOUND, REMARK),
    checklist=(
        Point("device placement", Status.PASSED, "on the GPU"),
        Point("synchronisation", Status.FAILED, "it waits"),
        Point("precision", Status.UNKNOWN, "not measured"),
        Point("inference mode", Status.NOT_APPLICABLE, "no evaluation"),
    ),
    numbers=Numbers(),
)


def shown(diagnosis: Diagnosis, folder: str = "") -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show_diagnosis(console, rows(diagnosis, folder))
    return console.export_text()


def test_a_place_as_an_editor_opens_it() -> None:
    assert place(LINE, "/job") == "lib/train.py:57  total += loss.item()"
    assert place(LINE, "/jo") == "/job/lib/train.py:57  total += loss.item()"
    assert place(replace(LINE, source="")) == "/job/lib/train.py:57"


def test_limits_and_remarks() -> None:
    found = rows(DIAGNOSIS)
    assert [row.gain for row in found.limits] == ["1.33×"]
    assert [(row.title, row.gain) for row in found.remarks] == [("Memory grows", "")]


def test_not_more_than_a_screen_holds() -> None:
    many = rows(replace(DIAGNOSIS, findings=(FOUND,) * (MOST_FINDINGS + 2)))
    assert (len(many.limits), many.more) == (MOST_FINDINGS, 2)
    assert "and 2 more, with --json" in shown(replace(DIAGNOSIS, findings=(FOUND,) * 6))


def test_the_screen() -> None:
    text = shown(DIAGNOSIS, "/job")
    for part in (
        "  It waits.",
        "  1  train.py:57 makes the GPU wait",
        "     could be 1.33× as fast, by a few lines",
        "     lib/train.py:57  total += loss.item()",
        "     3 times a step",
        "     → Read it now and then. (hotloop optimize tries compile)",
        "  ·  Memory grows",
        "✓ device placement   ✗ synchronisation   ? precision   – inference mode",
        "✗ synchronisation: it waits",
    ):
        assert part in text, part


def test_nothing_a_script_says_is_markup_or_an_escape() -> None:
    evil = replace(FOUND, places=(replace(LINE, source="[red]x\x1b[2J"),))
    text = shown(replace(DIAGNOSIS, findings=(evil,)))
    assert "[red]x" in text and "\x1b" not in text


def test_for_machines() -> None:
    told = json.loads(codec.encode(plain(DIAGNOSIS)))
    assert told["findings"][0]["gain"] == pytest.approx(4 / 3)
    assert told["findings"][0]["places"][0]["line"] == 57
    assert told["checklist"][1] == {
        "name": "synchronisation",
        "status": "failed",
        "evidence": "it waits",
    }
    assert plain(None) is None


class TestNumbers:
    def test_what_is_not_known_is_said_to_be(self) -> None:
        found = dict(number_rows(Numbers(), on_gpu=True))
        assert found == {
            "compute": "unknown FLOPs",
            "traffic": "unknown bytes",
            "GPU": "busy unknown of the time · unknown kernels a step",
            "energy": "unknown",
        }

    def test_without_a_gpu_nothing_is_said_of_one(self) -> None:
        assert [label for label, _ in number_rows(Numbers(), on_gpu=False)] == [
            "compute",
            "traffic",
        ]

    def test_of_what_was_counted_in_part_no_share_is_told(self) -> None:
        numbers = Numbers(
            flops_step=1.5e6, flops_second=3e9, flops_are_lower_bound=True, mfu_measured=0.004
        )
        assert dict(number_rows(numbers, on_gpu=False))["compute"] == (
            "at least 1.5 MFLOP a step, 3 GFLOP/s; some operators could not be counted"
        )

    def test_figures(self) -> None:
        numbers = Numbers(
            flops_step=2.5e12,
            flops_second=3e14,
            mfu_measured=0.404,
            mfu_datasheet=0.303,
            bytes_step=3e9,
            bandwidth_utilisation=0.5,
            intensity=833.0,
            kernels_step=412.0,
            gpu_busy=0.93,
            host_to_device_bytes_step=1048576.0,
            allocator_retries=0,
            fragmentation=0.1,
            graph_breaks=3,
            scaler_skips=1,
            footprint=Footprint(3.5, 0.1, 420.0, 0.03, 0.5, 14.0, 237.5, 475.0),
        )
        assert number_rows(numbers, on_gpu=True) == (
            (
                "compute",
                "2.5 TFLOP a step, 300 TFLOP/s · 40% of what was measured here, goal 50%"
                " · 30% of the data sheet's peak",
            ),
            (
                "traffic",
                "up to 2.8 GiB a step · 50% of the memory's bandwidth · 833 FLOP a byte"
                " · 1.0 MiB copied to the GPU",
            ),
            (
                "GPU",
                "busy 93% of the time · 412 kernels a step · 0 allocator retries"
                " · 10% of the reserved memory unused",
            ),
            (
                "energy",
                "420 W · 3.5 J a step · 0.1 J a sample · an epoch 0.5 kWh, about 238 g CO₂"
                " (estimated, at 475 g a kWh)",
            ),
            ("compiled", "3 graph breaks"),
            ("scaler", "1 steps left out"),
        )


def test_a_point_has_one_colon_whatever_its_evidence_has() -> None:
    point = Point("data loading", Status.FAILED, "74% of a step waits for data: too few workers")
    text = shown(replace(DIAGNOSIS, checklist=(point,)))
    assert "✗ data loading: 74% of a step waits for data (too few workers)\n" in text
