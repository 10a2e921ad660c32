"""Every link of the documentation, and every docs/*.md that a source names, leads to a page and a heading that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^()\s]+)\)")
MENTION = re.compile(r"(?<![\w./-])docs/[\w./-]+\.md(?:#[\w-]+)?")
TEXT = {".md", ".h", ".cpp", ".py", ".txt", ".toml", ".cmake", ".sh", ".yml", ""}
# Examples of links, and files of other projects.
LEFT_OUT = ("tests/end_to_end/test_doc_links.py", "tests/data/")


class Target(NamedTuple):
    source: Path
    page: Path
    heading: str  # empty: the page as a whole


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    text = without_code(page.read_text(encoding="utf-8"))
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#{1,6} (.+)$", text, flags=re.MULTILINE):
        name, count = slug(heading), 0
        while (name if count == 0 else f"{name}-{count}") in found:
            count += 1
        found.add(name if count == 0 else f"{name}-{count}")
    return found


def links(page: Path) -> list[Target]:
    targets = []
    for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):  # https:, mailto:
            continue
        path, _, heading = link.partition("#")
        targets.append(Target(page, (page.parent / path).resolve() if path else page, heading))
    return targets


def mentions(source: Path, root: Path) -> list[Target]:
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return [Target(source, root / name.partition("#")[0], name.partition("#")[2]) for name in MENTION.findall(text)]


def broken(targets: list[Target]) -> list[str]:
    complaints = []
    for source, page, heading in targets:
        if not page.exists():
            complaints.append(f"{source}: there is no {page}")
        elif heading and page.suffix == ".md" and heading not in anchors(page):
            complaints.append(f"{source}: {page} has no heading '{heading}'")
    return complaints


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("needs a git checkout, which lists the files")
    names = [name for name in listed.stdout.split("\0") if name and not name.startswith(LEFT_OUT)]
    return [ROOT / name for name in names if Path(name).suffix in TEXT and (ROOT / name).is_file()]


def test_each_link_between_pages_leads_somewhere() -> None:
    pages = [path for path in sources() if path.suffix == ".md"]
    targets = [target for page in pages for target in links(page)]
    assert len(targets) > 100
    assert not broken(targets)


def test_each_page_that_a_source_names_exists() -> None:
    targets = [target for path in sources() for target in mentions(path, ROOT)]
    assert len(targets) > 100
    assert not broken(targets)


def test_each_row_of_the_index_of_definitions_has_an_anchor() -> None:
    """Old links, docs/definitions.md#word, lead to the row that says where the word is defined."""
    index = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    rows = index[index.index("| word |") :].splitlines()[2:]
    assert rows
    assert [row for row in rows if not row.startswith('| <a id="')] == []
    pages = {path.name for path in (ROOT / "docs/definitions").glob("*.md")}
    assert pages == set(re.findall(r"\(definitions/(\w+\.md)\)", index))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    page, source = docs / "a.md", tmp_path / "a.cpp"
    page.write_text("# What `a` is: x, y\n\n[good](#what-a-is-x-y) [bad](#b) [gone](b.md)\n\n```\n[code](c.md)\n```\n")
    source.write_text("// docs/a.md#what-a-is-x-y docs/a.md#d docs/e.md other/docs/f.md\n")
    assert broken(links(page)) == [f"{page}: {page} has no heading 'b'", f"{page}: there is no {docs / 'b.md'}"]
    assert broken(mentions(source, tmp_path)) == [
        f"{source}: {page} has no heading 'd'",
        f"{source}: there is no {docs / 'e.md'}",
    ]
