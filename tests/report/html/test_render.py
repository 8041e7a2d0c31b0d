"""The page itself: that nothing in a study becomes markup, and that every figure is there."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from hotloop.report.html.render import figures, picture, render
from hotloop.report.page import page
from hotloop.study import Found, Options, Refused, Study
from hotloop.trial.trial import State
from tests.builders import job, trial
from tests.report.large import large_study
from tests.report.rich import rich
from tests.report.studies import failed, lost, numbered, searched, won
from tests.report.test_page import diagnosis, profiled
from tests.test_recordings import GPT2, RESNET, recorded

HOSTILE = "</script><img src=x onerror=alert(1)>\"'><b>\x1b[2J\u202e{{7*7}}"


class Reader(HTMLParser):
    """Every tag with its attributes, and what is said in between."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def read(study: Study, **more: Any) -> Reader:
    reader = Reader()
    reader.feed(render(page(study, **more)))
    reader.close()
    assert reader.open == []  # every tag is closed where it should be
    return reader


def hostile() -> Study:
    """Everything that a script, a lever or a hand could have put into a study."""
    bad = failed("screen", won().trials[2].plan, state=State.CRASHED, reason=HOSTILE)
    found = Found(
        Options(),
        refused=(Refused(HOSTILE, HOSTILE, True, 3.0),),
        verdict=HOSTILE,
        warnings=(HOSTILE,),
    )
    study = searched(found, won().trials[0], replace(bad, log=HOSTILE))
    machine = replace(study.machine, cpu=HOSTILE, system=HOSTILE)
    made = diagnosis(verdict=HOSTILE)
    finding = replace(made.findings[0], title=HOSTILE, remedy=HOSTILE, evidence=(HOSTILE,))
    return replace(
        study,
        job=job(target=f"{HOSTILE}.py", args=(HOSTILE,)),
        machine=machine,
        created=HOSTILE,
        command=HOSTILE,
        diagnosis=replace(made, findings=(finding,)),
    )


STUDIES: dict[str, Callable[[], Study]] = {
    "won": won,
    "lost": lost,
    "hostile": hostile,
    "empty": lambda: searched(Found(Options())),
    "profiled": lambda: profiled(trial(purpose=""), diagnosis=diagnosis()),
    "job failed": lambda: profiled(failed("", won().trials[0].plan, state=State.TIMED_OUT)),
    "recorded": lambda: recorded(RESNET),
}
EACH = pytest.mark.parametrize("name", STUDIES)


@EACH
def test_a_page_is_whole_and_loads_nothing(name: str) -> None:
    reader = read(STUDIES[name]())
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("script") == tags.count("style") == tags.count("h1") == 1
    assert not {"img", "link", "iframe", "object", "embed", "form", "base"} & set(tags)
    for tag, attributes in reader.tags:
        assert not any(key.startswith("on") for key in attributes), (tag, attributes)
        assert "style" not in attributes  # the page's policy would refuse it
        for key in ("src", "href", "srcset", "xlink:href", "action"):
            assert (attributes.get(key) or "#").startswith("#")


@EACH
def test_identifiers_are_unique_and_links_lead_somewhere(name: str) -> None:
    attributes = [attrs for _, attrs in read(STUDIES[name]()).tags]
    names = [attrs["id"] for attrs in attributes if "id" in attrs]
    assert len(set(names)) == len(names)
    wanted = {(attrs.get("href") or "")[1:] for attrs in attributes if "href" in attrs}
    assert wanted <= set(names)


def test_hostile_words_are_shown_as_words() -> None:
    study = hostile()
    reader = read(study, logs={HOSTILE: HOSTILE})
    said = "".join(reader.said)
    shown = "</script><img src=x onerror=alert(1)>\"'><b>{{7*7}}"
    assert said.count(shown) > 10
    assert "\x1b" not in said and "\u202e" not in said and "49" not in said.replace("2049", "")


def test_only_the_pages_own_script_may_run() -> None:
    text = render(page(hostile()))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in rules and "http" not in rules
    assert text.count("<script>") == text.count("</script>") == 1


def test_what_was_drawn() -> None:
    keys = [figure.key for figure in figures(page(won()))]
    assert keys == ["ladder", "proof", "phases", "timeline-1", "timeline-2", "memory"]
    keys = [figure.key for figure in figures(page(recorded(GPT2)))]
    assert keys == ["phases", "gpu", "timeline-1", "memory", "losses"]


def test_all_that_can_be_drawn() -> None:
    keys = [figure.key for figure in figures(page(rich()))]
    assert keys == [
        "ladder",
        "proof",
        "phases",
        "gpu",
        "timeline-1",
        "timeline-2",
        "timeline-3",
        "roofline",
        "memory",
        "memory-step",
        "memory-1",
        "losses",
        "sizes",
    ]


def test_a_batch_size_that_did_not_run_is_a_cross_with_its_reason() -> None:
    (figure,) = (each for each in figures(page(rich())) if each.key == "sizes")
    assert figure.wide.count('class="cross"') == 2
    assert "Batch 512: out of memory" in figure.wide
    assert [row[-1] for row in figure.table.rows] == [
        "",
        "",
        "where the plateau begins",
        "",
        "out of memory",
    ]


def test_each_figure_has_its_data_as_a_table() -> None:
    for figure in figures(page(won())):
        assert figure.table.rows
        assert all(len(row) == len(figure.table.head) for row in figure.table.rows)


def test_a_figure_alone_is_a_file_that_any_program_reads() -> None:
    import xml.etree.ElementTree as ElementTree

    for figure in figures(page(won())):
        text = picture(figure)
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in text
        assert figure.title in text
        assert all(meaning in text for _, meaning in figure.legend)


def test_figures_of_a_study_edited_by_hand_are_refused_rather_than_drawn() -> None:
    study = won()
    events = study.trials[0].measurement
    assert events is not None
    times = [time * 10**400 for time in events.events.time_ns]
    broken = replace(events, events=replace(events.events, time_ns=times))
    trials = numbered(*(replace(each, measurement=broken) for each in study.trials))
    with pytest.raises((ValueError, ArithmeticError)):
        render(page(replace(study, trials=trials)))


def test_a_very_large_study_makes_a_small_page() -> None:
    study = large_study(200, 10_000, random.Random(0), distinct=1)
    text = render(page(study))
    assert len(text.encode()) < 8 * 2**20
    assert text.count('<details class="log"') == 200


def test_a_failure_is_told_with_where_its_output_lies() -> None:
    refused = Refused("tf32", "It failed: ValueError: no.", True, 3.0, "trial-3/output.log")
    told = "It failed: ValueError: no; its output is in trial-3/output.log, beside the study"
    assert told in read(won(refused=(refused,))).said
