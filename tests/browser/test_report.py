"""The report as people meet it: in a browser, with a mouse, a keyboard, a phone and a printer."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

from hotloop.report.html.render import figures
from hotloop.report.page import page
from hotloop.study import Study
from tests.browser.conftest import Opener
from tests.report.html.test_render import HOSTILE, hostile
from tests.report.large import large_study
from tests.report.rich import rich
from tests.report.studies import lost

STUDIES: dict[str, Callable[[], Study]] = {"rich": rich, "lost": lost, "hostile": hostile}
VIEWS = ((1280, "light"), (375, "dark"))

SIZES = """() => [...document.querySelectorAll("figure")].map((figure) => {
  const drawn = [...figure.querySelectorAll(".drawing svg")].filter((svg) => svg.clientWidth);
  const svg = drawn[0];
  const text = [...svg.querySelectorAll("text")].map((each) => each.getBoundingClientRect());
  const box = svg.getBoundingClientRect();
  return {
    name: figure.dataset.name,
    drawings: drawn.length,
    height: box.height,
    shapes: svg.querySelectorAll("rect, circle, polyline").length,
    letters: text.length ? Math.min(...text.map((each) => each.height)) : 0,
    outside: text.filter((each) => each.left < box.left - 3 || each.right > box.right + 3).length,
  };
})"""


@cache
def drawn(name: str) -> list[str]:
    return [each.key for each in figures(page(STUDIES[name]()))]


@pytest.mark.parametrize(
    ("name", "width", "theme"),
    [*((name, *at) for name in STUDIES for at in VIEWS), ("rich", 768, "light")],
)
def test_it_opens_without_a_complaint(opened: Opener, name: str, width: int, theme: str) -> None:
    window = opened(STUDIES[name], width, theme, {HOSTILE: HOSTILE})
    wide = window.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"it scrolls sideways: {wide}"
    sizes = window.page.evaluate(SIZES)
    assert [each["name"] for each in sizes] == drawn(name)
    for each in sizes:
        assert each["drawings"] == 1 and each["shapes"] and each["height"] > 40, each
        assert each["letters"] > 8, f"too small to read: {each}"
        assert not each["outside"], f"text runs out of the drawing: {each}"
    window.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    wide = window.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"with all of it open it scrolls sideways: {wide}"
    assert window.complaints == []


def test_hostile_words_do_nothing(opened: Opener) -> None:
    window = opened(hostile, logs={HOSTILE: HOSTILE})
    assert window.page.locator("img, main script").count() == 0
    assert window.page.locator("h1").count() == 1
    assert "onerror=alert(1)" in window.page.locator(".job").inner_text()
    window.page.wait_for_timeout(50)
    assert window.complaints == []


def test_light_and_dark(opened: Opener) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = (opened(lost, theme=theme).page.evaluate(paper) for theme in ("light", "dark"))
    assert light != dark
    window = opened(lost)
    button = window.page.get_by_role("button", name="Dark")
    button.click()
    assert window.page.evaluate(paper) == dark
    window.page.get_by_role("button", name="Light").click()
    assert window.page.evaluate(paper) == light


def test_on_paper_it_is_light_and_has_no_buttons(opened: Opener) -> None:
    window = opened(rich, theme="dark")
    window.page.emulate_media(media="print")
    ink = window.page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(23, 25, 28)"
    assert not window.page.locator(".theme").is_visible()
    assert not window.page.locator("[data-save]").first.is_visible()


def test_tables_sort(opened: Opener) -> None:
    window = opened(rich)
    table = window.page.locator("#runs table")
    took = [7 if cell == "took" else -1 for cell in table.locator("th").all_inner_texts()].index(7)
    values = f"(t) => [...t.tBodies[0].rows].map((r) => Number(r.cells[{took}].dataset.value))"
    head = table.get_by_role("button", name="took")
    head.click()
    up = table.evaluate(values)
    assert up == sorted(up) and len(set(up)) > 3
    assert table.locator("th[aria-sort=ascending]").inner_text() == "took"
    head.press("Enter")
    assert table.evaluate(values) == sorted(up, reverse=True)
    by_step = table.get_by_role("button", name="a step", exact=True)
    by_step.click()
    cells = table.locator("tbody tr td:nth-child(3)").all_inner_texts()
    assert cells[-1] == "–" and cells[0] != "–"  # what has no value comes last


def test_what_is_pointed_at_says_what_it_is(opened: Opener) -> None:
    window = opened(rich)
    assert window.tip() == ""
    window.page.locator("#phases .wide .mark").first.hover()
    assert window.tip().startswith("as it is, between steps: ")
    window.page.locator("#losses .wide svg").hover()
    assert window.tip().startswith("backward pass ") and "under the plan" in window.tip()
    window.page.locator("h1").hover()
    assert window.tip() == ""


def test_everything_can_be_reached_with_the_keyboard(opened: Opener) -> None:
    window = opened(rich)
    page = window.page
    reachable = "button, a[href], summary, [tabindex='0']"
    visible = f"[...document.querySelectorAll({reachable!r})].filter((e) => e.checkVisibility())"
    wanted = page.evaluate(f"{visible}.length")
    reached = page.evaluate(
        f"{visible}.filter((e) => (e.focus(), document.activeElement === e)).length"
    )
    assert reached == wanted > 50
    page.locator("#ladder .wide").focus()
    page.keyboard.press("ArrowRight")
    assert window.tip().startswith("as it is: ")
    page.keyboard.press("ArrowRight")
    assert window.tip().startswith("bf16: ")
    page.keyboard.press("Escape")
    assert window.tip() == ""
    page.locator("#losses .wide").focus()
    page.keyboard.press("ArrowRight")
    assert window.tip().startswith("backward pass 1: ")


def test_the_tab_key_goes_from_figure_to_figure(opened: Opener) -> None:
    window = opened(rich)
    page = window.page
    page.locator("#ladder .wide").focus()
    at = "document.activeElement.closest('figure')?.dataset.name"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(at) == "proof":
            return
    pytest.fail("Tab did not leave the first figure")


def test_a_runs_number_leads_to_its_log(opened: Opener) -> None:
    log = rich().trials[0].log
    window = opened(rich, logs={log: "epoch 1\nloss 0.5"})
    window.page.locator("#runs a").first.click()
    shown = window.page.locator("#run-1")
    assert shown.evaluate("(each) => each.open")
    assert "loss 0.5" in shown.inner_text() and "graphs 1" in shown.inner_text()


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<svg "), ("png", b"\x89PNG")])
def test_figures_can_be_saved(opened: Opener, kind: str, start: bytes) -> None:
    window = opened(rich, theme="dark")
    with window.page.expect_download() as download:
        window.page.locator(f"#memory-step [data-save={kind}]").click()
    assert download.value.suggested_filename == f"hotloop-memory-step.{kind}"
    data = download.value.path().read_bytes()
    assert data.startswith(start) and len(data) > 2000
    if kind == "svg":
        assert b"rgb(18, 20, 22)" in data  # its ground, as it was seen
        assert b"Memory over a step" in data and b"activations</text>" in data
    assert window.complaints == []


def test_without_scripts_all_is_there(opened: Opener) -> None:
    window = opened(rich, java_script_enabled=False)
    assert window.page.locator("#roofline .wide svg").is_visible()
    assert window.page.locator("#runs tbody tr").count() == len(rich().trials)
    window.page.locator("#ladder summary").click()
    assert window.page.locator("#ladder table").is_visible()


@pytest.mark.parametrize(("name", "width", "theme"), [("rich", *VIEWS[0]), ("lost", *VIEWS[1])])
def test_nobody_is_kept_out(opened: Opener, name: str, width: int, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    window = opened(STUDIES[name], width, theme)
    window.page.locator("#phases summary").click()
    levels = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa"]}}
    found = axe.Axe().run(window.page, options=levels).response["violations"]
    told = [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found]
    assert [one for one in told if one[1] in ("serious", "critical")] == []


def test_a_very_large_study_stays_usable(opened: Opener) -> None:
    """Scrolled from its top to its end and sorted: no task keeps the page from answering for long.

    In multiples of what the small page takes: machines are shared.
    """
    sort = """() => { const began = performance.now();
      document.querySelector("#runs th button").click();
      document.body.offsetHeight; return performance.now() - began; }"""
    window = opened(lambda: large_study(200, 100, random.Random(0), distinct=4))
    assert window.page.locator("#runs tbody tr").count() == 200
    small = opened(lambda: large_study(50, 100, random.Random(0), distinct=4))
    taken = [min(each.page.evaluate(sort) for _ in range(5)) for each in (small, window)]
    assert taken[1] < 40 * taken[0]
    assert window.complaints == []
