"""Writes what is made from the source: the manual pages and the schema of a study.

    python docs/generate.py

Tests fail where a file is not what this would write.
"""

from __future__ import annotations

from pathlib import Path

from hotloop import schema
from hotloop.cli import commands, manual

DOCS = Path(__file__).parent


def made() -> dict[Path, str]:
    """Every file, and what stands in it."""
    pages = {DOCS / "commands" / f"{name}.md": manual.page(name) for name in commands.SUMMARIES}
    return {
        **pages,
        DOCS / "commands" / "index.md": manual.index(),
        DOCS / "study.schema.json": schema.text(),
    }


def main() -> None:
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
