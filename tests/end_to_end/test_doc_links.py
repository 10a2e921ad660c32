"""Links of the documentation lead to pages and headings that exist, and files that pages and sources name are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^()\s]+)\)")
MENTION = re.compile(r"(?<![\w./-])docs/[\w./-]+\.md(?:#[\w-]+)?")
QUOTED = re.compile(r"`([^`\n]+)`")
# Where a page may count a path from, besides its own folder.
FOLDERS = (".", "src/lanescope", "docs", "python", "ui/src")
TEXT = {".md", ".h", ".cpp", ".py", ".txt", ".toml", ".cmake", ".sh", ".yml", ""}
BUILT = {"build", ".venv"}
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


def named_paths(page: Path) -> list[str]:
    """What a page quotes as a path: words with a slash and letters of file names only, no wildcards, no NAME."""
    words = [word.strip("`,;:()") for quoted in QUOTED.findall(page.read_text(encoding="utf-8")) for word in quoted.split()]
    return [word for word in words if "NAME" not in word and re.fullmatch(r"[\w+-][\w+./-]*/[\w+./-]*(#[\w-]+)?", word)]


def missing_paths(page: Path, root: Path) -> list[str]:
    """Of the paths whose first folder is one of the repository or of its sources."""
    firsts = {each.name for each in [*root.iterdir(), *(root / "src/lanescope").iterdir()] if each.is_dir()}
    complaints = []
    for word in named_paths(page):
        path = word.partition("#")[0]
        homes = [page.parent, *(root / folder for folder in FOLDERS)]
        if path.split("/")[0] in firsts - BUILT and not any((home / path).exists() for home in homes):
            complaints.append(f"{page}: there is no {path}")
    return complaints


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


def test_each_path_that_a_page_names_exists() -> None:
    pages = [path for path in sources() if path.suffix == ".md"]
    assert sum(len(named_paths(page)) for page in pages) > 300
    assert [complaint for page in pages for complaint in missing_paths(page, ROOT)] == []


def test_each_row_of_the_index_of_definitions_has_an_anchor() -> None:
    """Old links, docs/definitions.md#word, lead to the row that says where the word is defined."""
    index = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    rows = index[index.index("| word |") :].splitlines()[2:]
    assert rows
    assert [row for row in rows if not row.startswith('| <a id="')] == []
    pages = {path.name for path in (ROOT / "docs/definitions").glob("*.md")}
    assert pages == set(re.findall(r"\(definitions/(\w+\.md)\)", index))


def test_a_path_that_moved_is_found(tmp_path: Path) -> None:
    (tmp_path / "src/lanescope/model").mkdir(parents=True)
    (tmp_path / "src/lanescope/model/trace.h").touch()
    page = tmp_path / "README.md"
    page.write_text("`model/trace.h` `src/lanescope/model/` `model/gone.h`, `model/*.h`, `torch/ops`, `a | model/none.h`\n")
    assert missing_paths(page, tmp_path) == [f"{page}: there is no model/gone.h", f"{page}: there is no model/none.h"]


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
