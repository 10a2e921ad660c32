"""`lanescope explain --html`: one page that needs nothing else, whatever the trace's strings say."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import DATA, SOURCE, slice_event, trace_json

SMALL = str(SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json")
TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
EVIL = [
    "</script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(2)>",
    "' autofocus onfocus=alert(3) x='",
    "]]><script>alert(4)</script><!--",
    "&lt;script&gt;alert(5)&lt;/script&gt;",
    "javascript:alert(6)",
    "\u202e\u0000\u001b]0;title\u0007",
]


def parse(text: str) -> ElementTree.Element:
    """Well-formed or an exception. Nothing that loads, submits, or runs on its own."""
    page = ElementTree.fromstring(text)
    for element in page.iter():
        name = element.tag.replace(XHTML, "").replace(SVG, "")
        assert name not in {"img", "iframe", "object", "embed", "link", "form", "base", "use", "image", "foreignObject"}
        for attribute, value in element.attrib.items():
            assert not attribute.lower().startswith("on"), (name, attribute)
            assert attribute not in {"style", "src"}, (name, attribute)
            if attribute.endswith("href"):
                assert value.startswith("#")
    assert len(list(page.iter(XHTML + "script"))) == 1
    return page


def text_of(page: ElementTree.Element) -> str:
    return "".join(page.itertext())


@pytest.mark.parametrize("trace", [SMALL, TRAIN])
def test_the_page_is_well_formed_and_names_what_it_allows(run, trace):
    page = parse(run("explain", trace, "--html", "-").out)
    policy = next(m.get("content") for m in page.iter(XHTML + "meta") if m.get("http-equiv") == "Content-Security-Policy")
    for element in "style", "script":
        inside = next(page.iter(XHTML + element)).text
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy, f"new hash of the {element}: sha256-{digest}"
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in page.iter():
        for name in (element.get("aria-labelledby") or "").split():
            assert name in ids
        if (element.get("href") or "").startswith("#"):
            assert element.get("href")[1:] in ids
        for used in re.findall(r"url\(#([^)]+)\)", " ".join(element.attrib.values())):
            assert used in ids
    for svg in page.iter(SVG + "svg"):
        if svg.get("role") == "img":
            assert svg.find(SVG + "title").text and svg.find(SVG + "desc").text


def test_the_page_says_what_the_text_says(run):
    text = text_of(parse(run("explain", TRAIN, "--html", "-").out))
    answer = json.loads(run("explain", TRAIN, "--json").out)
    assert answer["headline"]["text"] in text
    for finding in answer["findings"]:
        assert finding["verdict"]["text"] in text
        for part in [*finding["arithmetic"], *(each["what"] for each in finding["evidence"])]:
            assert part["text"] in text
        for advice in finding["try_next"]:
            assert advice in text
    for rule in answer["rules"]:
        assert rule["id"] in text
        assert rule.get("missing", "") in text
    device = answer["devices"][0]
    steady = device["steady"]["wall_ns"] // len(answer["steady_steps"])
    for wall_ns in steady, device["steps"][0]["wall_ns"], device["steps"][-1]["wall_ns"]:
        assert f"{wall_ns:,} ns" in text


def test_a_file_is_written_once(run, tmp_path):
    done = run("explain", SMALL, "--html", "out.html")
    assert done.code == 0 and re.fullmatch(r"wrote out\.html: [\d.]+ kB\n", done.out)
    parse((tmp_path / "out.html").read_text(encoding="utf-8"))
    again = run("explain", SMALL, "--html", "out.html")
    assert again.code == 2 and "--force" in again.complaint()
    assert run("explain", SMALL, "--html", "out.html", "--force").code == 0
    assert os.listdir(tmp_path) == ["out.html"]
    assert (tmp_path / "out.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_what_cannot_be_written_is_said(run, tmp_path):
    assert run("explain", SMALL, "--html", "nowhere/out.html").code == 2
    assert run("explain", SMALL, "--html", str(tmp_path)).code == 2
    full = run("explain", SMALL, "--html", "/dev/full", "--force")
    assert full.code == 1 and "No space left" in full.complaint()
    for other in "--json", "--md":
        assert run("explain", SMALL, "--html", "out.html", other).code == 2
    assert run("explain", SMALL, "--force").code == 2
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_names_stay_text(run, tmp_path, evil):
    """The same string as operator, range, kernel, thread, device and file name."""
    events = [{"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": evil}}]
    for step in range(5):
        at = 1000 + step * 500
        events.append(slice_event("user_annotation", f"ProfilerStep#{step}", at, 480))
        events.append(slice_event("user_annotation", evil, at + 5, 470))
        for i in range(10):
            start, id_ = at + 10 + i * 40, step * 10 + i + 1
            events.append(slice_event("cpu_op", evil, start, 30))
            events.append(slice_event("cuda_runtime", "cudaLaunchKernel", start + 5, 10, correlation=id_))
            events.append(slice_event("kernel", evil, start + 20, 2, tid=7, pid=0, correlation=id_, device=0, stream=7))
    trace = trace_json(events)
    trace["deviceProperties"][0]["name"] = evil
    name = "".join(c for c in evil if c not in "/\0")[:80] + ".json"
    (tmp_path / name).write_text(json.dumps(trace))
    done = run("explain", name, "--html", "-")
    assert done.code == 0, done.err
    page = parse(done.out)
    if "\0" not in evil:
        assert evil in text_of(page)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", done.out)


def read_pages(run, folder):
    """How many traces of the folder could be read; each has a page under 2 MB that parses."""
    read = 0
    for path in sorted(folder.rglob("*.json*")):
        done = run("explain", path, "--html", "-")
        if done.code != 0:
            continue
        read += 1
        assert len(done.out_bytes) < 2_000_000, path
        parse(done.out)
    return read


def test_shipped_traces_have_small_well_formed_pages(run):
    assert sum(read_pages(run, DATA / folder) for folder in ("h200", "ddp4", "h200_mlp_train", "torch213_recompile")) > 15


def test_shared_traces_have_small_well_formed_pages(run, shared_traces):
    assert read_pages(run, shared_traces) > 50


CHROMIUM = os.environ.get("LANESCOPE_CHROMIUM", "/usr/bin/chromium")


@pytest.mark.skipif(not os.access(CHROMIUM, os.X_OK), reason="needs Chromium (apt-get install chromium, or LANESCOPE_CHROMIUM)")
@pytest.mark.parametrize("trace", ["cpu_faults/frames_thrown_away.bad.torch.json.gz", "h200_stacks/cpu_only.json.gz", "h200_mlp_train/trace.json.gz"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_is_no_wider_than_the_screen(run, tmp_path, trace, width):
    run("explain", DATA / trace, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text().replace("<details", '<details open="open"')
    page = re.sub(r"<meta http-equiv=.Content-Security-Policy.[^>]*>", "", page)
    measure = "<script>onload = () => parent.document.title = `width ${document.documentElement.scrollWidth} of ${innerWidth}`</script></body>"
    (tmp_path / "measured.html").write_text(page.replace("</body>", measure))
    # Chromium's windows are 500 wide at least; a frame may be smaller.
    (tmp_path / "frame.html").write_text(f'<iframe src="measured.html" width="{width}" height="900" style="border:0"></iframe>')
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-web-security", "--allow-file-access-from-files",
         f"--user-data-dir={tmp_path / 'user'}", "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom",
         f"file://{tmp_path / 'frame.html'}"],
        capture_output=True, text=True, timeout=120, check=False,
    )
    assert f"<title>width {width} of {width}</title>" in done.stdout, done.stdout[:500] + done.stderr[-500:]
