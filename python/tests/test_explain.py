"""lanescope.explain: values, text, page and notebook of the same explanation; without torch, but for profiles."""

from __future__ import annotations

import html.parser
import json
import os
import pathlib
import subprocess

import pytest

import lanescope

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = ROOT / "tests/data/h200_mlp_train/trace.json.gz"
SMALL = ROOT / "tests/data/h200_64_bf16_warm_eager/trace.json"


def event(cat, name, ts, dur, tid=100, pid=100, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "pid": pid, "args": args}


def launch_bound(op="aten::mm", kernel="gemm"):
    """Four steps of 100 us: ten operators of 10 us, each launches a kernel of 1 us that starts when its call ends."""
    events = []
    for step in range(4):
        at = 1000 + 100 * step
        events.append(event("user_annotation", f"ProfilerStep#{step}", at, 100))
        for i in range(10):
            start, number = at + 10 * i, 10 * step + i + 1
            events.append(event("cpu_op", op, start, 10))
            events.append(event("cuda_runtime", "cudaLaunchKernel", start + 3, 4, correlation=number))
            events.append(event("kernel", kernel, start + 7, 1, tid=7, pid=0, correlation=number, device=0, stream=7))
    return events


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"traceEvents": launch_bound()}))
    return file


def test_values_of_a_drawn_program(path):
    what = lanescope.explain(path)
    assert what.headline.startswith("CPU-bound: of the 100.000us a step takes, the GPU works 10.000us")
    first = what.findings[0]
    assert (first.rule, first.kind, first.verdict) == ("host-bound", "bound", what.headline)
    assert first.at_stake_ns == 90_000 and first.at_stake_ratio == pytest.approx(0.9)
    assert (first.confidence, first.sample_count, first.sample_noun) == ("medium", 3, "step")
    assert first.arithmetic and first.try_next
    assert what.steady_steps == [1, 2, 3]


def test_evidence_names_rows_of_the_trace(path):
    what = lanescope.explain(path)
    placed = [proof for finding in what.findings for proof in finding.evidence if proof.row is not None]
    assert placed
    for proof in placed:
        assert what.trace.name(proof.row) == proof.name
        assert int(what.trace.start_ns[proof.row]) == proof.start_ns
        assert int(what.trace.dur_ns[proof.row]) == proof.dur_ns


def test_walls_add_up_exactly(path):
    (walls,) = lanescope.explain(path).walls
    assert (walls.device, walls.rules_look_at_it, len(walls.steps)) == (0, True, 4)
    # The first step's window begins with the CPU's; three steady ones of 100 us with ten kernels of 1 us.
    assert (walls.steady.wall_ns, walls.steady.compute_ns, walls.steady.idle_ns) == (300_000, 30_000, 270_000)
    assert [wall.number for wall in walls.steps] == [0, 1, 2, 3]
    for wall in (walls.steady, *walls.steps):
        parts = wall.compute_ns + wall.exposed_communication_ns + wall.exposed_copy_ns + wall.idle_ns
        assert parts == wall.wall_ns and sum(wall.idle_by_cause_ns.values()) == wall.idle_ns


def test_what_was_not_checked_says_what_it_needs(path):
    what = lanescope.explain(path)
    missing = {rule.rule: rule for rule in what.not_checked}
    assert "record_shapes=True" in missing["kernel-spread"].missing and missing["kernel-spread"].question
    found = {finding.rule for finding in what.findings}
    assert found.isdisjoint(missing) and found.isdisjoint(what.quiet) and "gpu-bound" in what.quiet


def test_a_cost_that_another_rule_tells_is_covered():
    what = lanescope.explain(ROOT / "tests/data/faults/memcpy_before_gemm.bad.lanescope.json.gz")
    assert what.covered["exposed-copy"] == "copy-before-gemm"
    assert "exposed-copy" not in {finding.rule for finding in what.findings}


def test_a_step_longer_than_all_others_is_left_out():
    what = lanescope.explain(ROOT / "tests/data/faults/validation_in_a_step.bad.torch.json.gz")
    assert what.long_step == 5 and what.steady_steps == [4, 6, 7, 8]
    assert lanescope.explain(TRAIN).long_step is None


def test_one_step_and_chosen_questions():
    what = lanescope.explain(TRAIN, step=3, question=["gpu-bound", "host-sync"])
    assert what.steady_steps == [3]
    assert {f.rule for f in what.findings} | set(what.quiet) == {"gpu-bound", "host-sync"}
    assert [f.rule for f in lanescope.explain(TRAIN, question="gpu-bound").findings] == ["gpu-bound"]


def test_a_question_in_words_asks_the_rules_that_answer_it():
    what = lanescope.explain(TRAIN, question="is the GPU itself the limit?")
    assert [finding.rule for finding in what.findings] == ["gpu-bound"] and not what.quiet
    with pytest.raises(lanescope.InvalidArgumentError, match="words of its question"):
        lanescope.explain(TRAIN, question="quux frobnicate")


def test_mistakes_are_lanescope_errors(path, tmp_path):
    with pytest.raises(lanescope.InvalidArgumentError, match="did you mean 'host-sync'"):
        lanescope.explain(path, question="hostsync")
    with pytest.raises(lanescope.InvalidArgumentError, match="from 0 to 3, found 99"):
        lanescope.explain(path, step=99)
    with pytest.raises(lanescope.IoError):
        lanescope.explain(tmp_path / "nowhere.json")
    with pytest.raises(lanescope.IoError):
        lanescope.explain(path).to_html(tmp_path / "nowhere" / "out.html")


@pytest.mark.skipif("LANESCOPE_COMMAND" not in os.environ, reason="needs the lanescope command (LANESCOPE_COMMAND)")
def test_text_markdown_json_and_page_are_the_commands(tmp_path):
    def command(*flags):
        done = subprocess.run([os.environ["LANESCOPE_COMMAND"], "explain", TRAIN, *flags], capture_output=True, check=True)
        return done.stdout.decode()

    what = lanescope.explain(TRAIN)
    screen, hint = str(what).rsplit("\n", 2)[0], str(what).rsplit("\n", 2)[1]
    assert command().startswith(screen.rsplit("\n", 1)[0] + "\n") and hint.endswith("print(explanation.full_text())")
    assert what.full_text() == command("--full")
    assert what.to_markdown() == command("--md")
    assert what.to_json() == command("--json")
    what.to_html(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == command("--html", "-")


def test_text_and_json_agree(path):
    what = lanescope.explain(lanescope.read_trace(path))
    assert str(what).startswith("CPU-bound: of the 100 us a step takes")
    assert what.full_text().startswith("CPU-bound: of the 100.000us a step takes")
    assert what.to_markdown().startswith("# What bounds a step\n")
    assert json.loads(what.to_json())["headline"]["text"] == what.headline
    assert repr(what) == f"<lanescope.Explanation {what.headline!r}: {len(what.findings)} findings>"


def test_a_page_replaces_an_older_one_whole(path, tmp_path):
    out = tmp_path / "out.html"
    out.write_text("old")
    lanescope.explain(path).to_html(out)
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n") and "<title>run.json, explained</title>" in page
    assert sorted(os.listdir(tmp_path)) == ["out.html", "run.json"]


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def tags_of(text):
    parser = Tags()
    parser.feed(text)
    parser.close()
    return parser.tags


def test_a_notebook_sees_one_closed_frame(tmp_path):
    evil = "\"></iframe><script>alert('x')</script><img src=x onerror=alert(1)>"
    file = tmp_path / "evil.json"
    file.write_text(json.dumps(launch_bound(op=evil, kernel=evil)))
    shown = lanescope.explain(file)._repr_html_()
    ((tag, attributes),) = tags_of(shown)  # nothing but the frame
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"  # no allow-same-origin
    inside = tags_of(attributes["srcdoc"])
    names = [name for name, _ in inside]
    assert names.count("script") == 1 and "img" not in names and "iframe" not in names and "a" not in names
    assert not [a for _, attrs in inside for a in attrs if a.startswith("on") or a == "style"]
    policy = next(a["content"] for name, a in inside if name == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


def test_traces_without_gpu_work_or_events_are_explained(tmp_path):
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    what = lanescope.explain(tmp_path / "empty.json")
    assert what.headline.startswith("The trace is empty") and what.findings == [] and what.walls == []
    assert "The trace is empty" in str(what) and "<iframe" in what._repr_html_()


def test_a_trace_without_gpu_work_has_walls_of_the_cpu(tmp_path):
    """Steps of 100 us: a batch of 20, an operator of 30, the optimizer of 10; the rest is outside of operators."""
    events = []
    for step in range(4):
        at = 1000 + 100 * step
        events.append(event("user_annotation", f"ProfilerStep#{step}", at, 100))
        events.append(event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 20))
        events.append(event("cpu_op", "aten::mm", at + 30, 30))
        events.append(event("user_annotation", "Optimizer.step#SGD.step", at + 70, 10))
    events.append(event("user_annotation", "ProfilerStep#4", 1400, 5))
    (tmp_path / "cpu.json").write_text(json.dumps({"traceEvents": events}))
    what = lanescope.explain(tmp_path / "cpu.json")
    assert what.walls == [] and what.steady_steps == [1, 2, 3] and what.cut_steps == [4]
    walls = what.cpu_walls
    assert walls.thread == 100 and [wall.number for wall in walls.steps] == [0, 1, 2, 3, 4]
    assert walls.steps[1][2:] == (100_000, 0, 20_000, 0, 10_000, 30_000, 40_000)
    assert walls.steady[2:] == (300_000, 0, 60_000, 0, 30_000, 90_000, 120_000)
    assert (walls.steady.input_data_ns, walls.steady.outside_of_operators_ns) == (60_000, 120_000)
    assert "Step 4 is left out" in what.headline
    assert lanescope.explain(SMALL).cpu_walls is None and lanescope.explain(SMALL).cut_steps == []


def test_an_explanation_keeps_its_trace_alive(path):
    import gc

    what = lanescope.explain(path)
    text = str(what)
    what.trace = lanescope.Trace()
    gc.collect()
    assert str(what) == text


def test_a_stopped_profile_explains_itself():
    with lanescope.profile(record_shapes=True) as prof:
        with lanescope.record_function("work"):
            sum(range(1000))
    what = prof.explain()
    assert "no GPU work" in what.headline
    assert str(lanescope.explain(prof)) == str(what)
    with pytest.raises(lanescope.InvalidArgumentError):
        prof.explain(step=1)
    with pytest.raises(RuntimeError):
        lanescope.profile().explain()


def test_many_threads_explain_one_trace():
    import threading

    trace, texts = lanescope.read_trace(TRAIN), []
    threads = [threading.Thread(target=lambda: texts.append(str(lanescope.explain(trace)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 4 and len(set(texts)) == 1


def test_small_real_trace_reads_like_the_command():
    assert lanescope.explain(SMALL).headline.startswith("CPU-bound: of the 78.865us a step takes")
