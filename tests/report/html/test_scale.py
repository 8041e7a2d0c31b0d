from __future__ import annotations

import pytest

from hotloop.report.html import colours, svg
from hotloop.report.html.scale import Scale, byte_ticks


def test_places() -> None:
    scale = Scale(0, 10, 100, 200)
    assert [scale(0), scale(5), scale(10)] == [100, 150, 200]
    upwards = Scale(1, 1000, 300, 0, is_log=True)
    assert [round(upwards(value)) for value in (1, 10, 1000)] == [300, 200, 0]
    assert Scale(3, 3, 7, 9)(3) == 7


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 0.0152, [0, 0.005, 0.01, 0.015]),
        (2.1, 4.9, [3, 4]),
        (5, 5, [5]),
    ],
)
def test_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert Scale(low, high, 0, 1).ticks(5 if high != 4.9 else 3) == pytest.approx(ticks)


def test_sizes_are_round_in_their_unit() -> None:
    assert byte_ticks(Scale(0, 9 * 2**30, 0, 1)) == [0, 5 * 2**30]
    assert byte_ticks(Scale(0, 300 * 2**20, 0, 1)) == [0, 100 * 2**20, 200 * 2**20, 300 * 2**20]


def test_decades() -> None:
    assert Scale(0.5, 2000, 0, 1, is_log=True).ticks() == pytest.approx([1, 10, 100, 1000])


def test_text_and_attributes_are_never_markup() -> None:
    made = svg.mark('"><script>', svg.text(1, 2, "<b>&"))
    assert made == (
        '<g class="mark" data-tip="&#34;&gt;&lt;script&gt;">'
        '<text x="1" y="2">&lt;b&gt;&amp;</text></g>'
    )


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        svg.rect(0, 0, float("inf"), 1)


def test_a_long_name_is_cut_to_its_room() -> None:
    assert svg.fitted("a" * 100, 100).endswith("…")
    assert svg.fitted("short", 100) == "short"


def test_every_colour_of_the_style_is_known_in_both_lights() -> None:
    assert colours.LIGHT.keys() == colours.DARK.keys()
    assert colours.resolved("fill: var(--ink)") == f"fill: {colours.LIGHT['ink']}"


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", [colours.LIGHT, colours.DARK])
@pytest.mark.parametrize("ink", ["ink", "soft", "good", "bad"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_is_legible(theme: dict[str, str], ink: str, ground: str) -> None:
    """At least 4.5 to 1, as the Web Content Accessibility Guidelines ask of text."""
    light, dark = sorted((luminance(theme[ink]), luminance(theme[ground])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5
