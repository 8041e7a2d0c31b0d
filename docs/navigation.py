"""The order of the site's pages: as one reads them, not as their names are spelled.

A page that is not named here comes at the end of its level: nobody who adds one needs to know.
"""

from __future__ import annotations

from typing import Any

ORDER = (
    "index.md",
    "tutorial.md",
    "optimize.md",
    "profile.md",
    "report.md",
    "compare.md",
    "plans.md",
    "levers/",
    "jobs.md",
    "doctor.md",
    "lab.md",
    "configuration.md",
    "commands/",
    "exit-codes.md",
    "study.md",
    "comparison.md",
    "architecture.md",
)


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Called by mkdocs when it has gathered all pages."""
    nav.items.sort(key=_place)
    pages = [page for item in nav.items for page in _pages(item)]
    nav.pages[:] = pages
    for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        page.previous_page, page.next_page = before, after
    return nav


def _place(item: Any) -> int:
    first = next(iter(_pages(item)), None)
    name = first.file.src_uri if first is not None else ""
    matching = [at for at, one in enumerate(ORDER) if name == one or name.startswith(f"{one}")]
    return matching[0] if matching else len(ORDER)


def _pages(item: Any) -> list[Any]:
    if item.is_section:
        return [page for child in item.children for page in _pages(child)]
    return [item] if item.is_page else []
