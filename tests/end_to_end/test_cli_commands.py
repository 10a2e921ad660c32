"""What each reading and writing subcommand answers, on small traces with known numbers and on real ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import DATA, SOURCE, clean_environment, matmul_events, slice_event, trace_json


def calls_of(table: str) -> dict:
    """{name: calls} of a text table, in its order: first and last cell of each row."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines() if not line.startswith("---")]
    return {cells[0]: int(cells[-1]) for cells in rows if len(cells) > 5 and cells[-1].isdigit()}


# --- table ------------------------------------------------------------------------------------------------------------


def test_table_of_the_small_trace(run, matmul_trace):
    calls = calls_of(run("table", matmul_trace).out)
    assert calls == {"ProfilerStep*": 1, "aten::matmul": 1, "aten::mm": 1, "cudaLaunchKernel": 1, "gemm_kernel": 1}


def test_table_json_has_every_row_and_exact_nanoseconds(run, matmul_trace):
    document = json.loads(run("table", matmul_trace, "--json").out)
    assert document["lanescope"]["schema"] == 1 and document["lanescope"]["command"] == "table"
    rows = {row["name"]: row for row in document["rows"]}
    assert rows["aten::matmul"]["cpu_time_total_ns"] == 50_000
    assert rows["aten::matmul"]["self_cpu_time_total_ns"] == 10_000  # 50 us minus aten::mm's 40
    assert rows["aten::mm"]["device_time_total_ns"] == 7_000
    assert rows["aten::matmul"]["self_device_time_total_ns"] == 0


def test_table_csv_is_one_header_and_one_line_a_row(run, matmul_trace):
    rows = list(csv.DictReader(io.StringIO(run("table", matmul_trace, "--csv").out)))
    assert sorted(row["name"] for row in rows) == sorted(
        ["ProfilerStep*", "aten::matmul", "aten::mm", "cudaLaunchKernel", "gemm_kernel"])


def test_row_limit_sort_header_and_unit(run, matmul_trace):
    two = run("table", matmul_trace, "--row-limit", "2", "--sort-by", "cpu_time_total").out
    assert list(calls_of(two)) == ["ProfilerStep*", "aten::matmul"]
    assert calls_of(run("table", matmul_trace, "--row-limit", "0").out) == {}
    assert len(calls_of(run("table", matmul_trace, "--row-limit", "1000000000").out)) == 5
    assert run("table", matmul_trace, "--row-limit", "-1").out == run("table", matmul_trace).out
    assert "my header" in run("table", matmul_trace, "--header", "my header").out
    assert "0.050ms" in run("table", matmul_trace, "--time-unit", "ms").out
    assert list(calls_of(run("table", matmul_trace, "--top-level-only", "--style", "torch").out))[0] == "ProfilerStep*"


def test_the_last_of_two_equal_flags_counts(run, matmul_trace):
    assert run("table", matmul_trace, "--row-limit", "1", "--row-limit=2").out == run(
        "table", "--row-limit", "2", matmul_trace).out


def test_long_names_are_cut_unless_none(run, tmp_path):
    path = tmp_path / "long.json"
    path.write_text(json.dumps(trace_json([slice_event("cpu_op", "x" * 300, 1, 2)])))
    assert "x" * 52 + "..." in run("table", path).out
    assert "x" * 300 in run("table", path, "--max-name-column-width", "none").out


def test_table_without_rows_says_so(run, tmp_path):
    path = tmp_path / "nothing.json"
    path.write_text(json.dumps(trace_json([])))
    ran = run("table", path)
    assert ran.code == 0 and "holds no operator" in ran.err


def test_torch_style_equals_torchs_text_on_every_h200_trace(run):
    compared = 0
    for text in sorted((DATA / "h200").glob("*.txt")):
        trace = text.with_suffix(".json.gz")
        ran = run("table", trace, "--style", "torch", "--sort-by", "cuda_time_total", "--row-limit", "15")
        assert ran.code == 0
        # recording.md knows cells of torch's own that the file cannot give; test_torch_tables names them.
        differing = [a for a, b in zip(ran.out.splitlines(), text.read_text().splitlines()) if a != b]
        assert len(differing) <= 1 and len(ran.out.splitlines()) == len(text.read_text().splitlines()), (trace, differing)
        compared += 1
    assert compared >= 13


def test_a_wide_table_on_a_narrow_terminal_names_the_way_out(run_in_terminal, matmul_trace):
    # A fresh pseudo terminal has no size; tput-like programs and ours then know no width and stay silent.
    assert "less -S" not in run_in_terminal("table", matmul_trace).out


# --- tree -------------------------------------------------------------------------------------------------------------


def names_in_order(text: str) -> list:
    return re.findall(r"(ProfilerStep\S*|aten::\w+|cu\w+Launch\w*|cudaLaunchKernel\w*|\S*kernel\S*|nvjet\S*)", text)


def test_tree_shows_the_chain_from_step_to_kernel(run, matmul_trace):
    text = run("tree", matmul_trace).out
    chain = [name for name in names_in_order(text) if name not in {"kernels", "kernels,"}]
    assert chain[:5] == ["ProfilerStep#3", "aten::matmul", "aten::mm", "cudaLaunchKernel", "gemm_kernel"]


def test_tree_of_a_step_an_operator_a_depth(run, matmul_trace):
    assert "gemm_kernel" in run("tree", matmul_trace, "--step", "3").out
    assert "ProfilerStep" not in run("tree", matmul_trace, "--op", "aten::mm").out.splitlines()[1]
    assert "gemm_kernel" not in run("tree", matmul_trace, "--depth", "2").out
    ran = run("tree", matmul_trace, "--step", "9")
    assert ran.code == 2 and "3" in ran.complaint()
    ran = run("tree", matmul_trace, "--op", "aten::matmull")
    assert ran.code == 2 and "aten::matmul" in ran.complaint()


@pytest.mark.parametrize("arguments", [["--step", "-1"], ["--step", "x"], ["--depth", "0"], ["--depth", "257"]])
def test_tree_refuses_senseless_numbers(run, matmul_trace, arguments):
    ran = run("tree", matmul_trace, *arguments)
    assert ran.code == 2 and "expects a whole number" in ran.complaint()


def test_tree_json_nests(run, matmul_trace):
    document = json.loads(run("tree", matmul_trace, "--json").out)
    assert document["lanescope"]["command"] == "tree"
    assert "gemm_kernel" in json.dumps(document)


def test_tree_of_real_traces_shows_matmul_to_kernel(run):
    text = run("tree", DATA / "h200_64_bf16_warm_eager" / "trace.json").out
    at = [text.index(name) for name in ("aten::matmul", "aten::mm", "LaunchKernel", "nvjet")]
    assert at == sorted(at)
    text = run("tree", DATA / "h200_b8x64_bf16_cold_eager" / "trace.json").out
    assert text.index("aten::matmul") < text.index("aten::bmm")


# --- describe -----------------------------------------------------------------------------------------------------------


def test_describe_says_what_is_known(run):
    ran = run("describe", "ampere_sgemm_128x64_nn", "void mine::thing<int>(int)")
    assert ran.code == 0 and ran.err == ""
    assert ran.out.splitlines()[0] == "GEMM f32 128x64 nn (cuBLAS, Ampere)"
    assert ran.out.splitlines()[-3:-1] == ["thing", "  unknown"] and "--events" in ran.out.splitlines()[-1]


def test_describe_still_answers_to_its_old_name(run):
    assert run("name", "aten::mm").out == run("describe", "aten::mm").out != ""
    assert run("help", "name").out == run("help", "describe").out


def test_describe_json_keeps_the_raw_name(run):
    names = json.loads(run("describe", "--json", "triton_poi_fused_add_relu_0").out)["names"]
    assert names == [{"name": "triton_poi_fused_add_relu_0", "text": "fused add+relu (Triton, pointwise)", "known": True,
                      "library": "Triton", "kind": "fused", "operation": "fused", "variant": "pointwise",
                      "fused": ["add", "relu"]}]


def test_describe_reads_standard_input_line_by_line(binary):
    done = subprocess.run([binary, "describe", "-"], input=b"volta_sgemm_64x64_nt\r\n\nMemset (Device)\nlast\x1b[2J",
                          capture_output=True, check=True, timeout=300)
    heads = [line for line in done.stdout.decode().splitlines() if not line.startswith(" ")]
    assert heads == ["GEMM f32 64x64 nt (cuBLAS, Volta)", "memset", "last?[2J"]


def test_describe_needs_names_or_a_trace(run, matmul_trace):
    assert run("describe").code == 2 and "--trace" in run("describe").complaint()
    assert run("describe", "x", "--trace", matmul_trace).code == 2


def test_describe_of_a_trace_lists_every_kernel_and_the_share_named(run, matmul_trace):
    lines = run("describe", "--trace", matmul_trace).out.splitlines()
    assert "gemm_kernel" in lines[1] and lines[1].endswith("[unknown]") and lines[-1].startswith("0.00% of GPU time named")
    trace = DATA / "h200_64_bf16_warm_eager" / "trace.json"
    document = json.loads(run("describe", "--trace", trace, "--json").out)
    assert [each["text"] for each in document["names"]] == [
        "GEMM 64x8x64 NNT (cuBLASLt nvjet, sm90)", "add, bf16 (ATen elementwise, vectorized x8)"]
    assert document["named_ns"] == document["total_ns"] == sum(each["total_ns"] for each in document["names"])
    assert run("describe", "--trace", trace).out.splitlines()[-1].startswith("100.00% of GPU time named")


def test_describe_explains_events_and_keeps_their_whole_names(run):
    ran = run("describe", "Activity Buffer Request", "aten::_local_scalar_dense", "Torch-Compiled Region: 2/1", "Request")
    lines = ran.out.splitlines()
    assert ran.code == 0 and ran.err == "" and all(len(line) <= 100 for line in lines[:-1])
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == ["Activity Buffer Request", "aten::_local_scalar_dense", "Torch-Compiled Region: 2/1", "Request"]
    assert lines[1].split(maxsplit=1) == ["kind", "profiler overhead"] and lines[-2] == "  unknown"
    assert "  version          1" in lines and "  rule             host-sync: docs/rules/host-sync.md" in lines
    scalar = json.loads(run("describe", "--json", "aten::_local_scalar_dense").out)["names"][0]
    assert scalar["known"] and scalar["kind"] == "operator" and scalar["cpu_waits"].startswith("yes")
    assert run("describe", "aten::mm", "--events").code == 2


def test_describe_events_is_a_glossary_of_a_trace(run, tmp_path, matmul_trace):
    document = json.loads(run("describe", "--trace", matmul_trace, "--events", "--json").out)
    rows = {row["name"]: row for row in document["events"]}
    assert set(rows) == {"ProfilerStep#3", "aten::matmul", "aten::mm", "cudaLaunchKernel"}
    assert rows["aten::mm"]["count"] == 1 and rows["aten::mm"]["kind"] == "operator" and "GEMM" in rows["aten::mm"]["gpu_work"]
    assert document["event_count"] == document["known_count"] == 4
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps(trace_json([slice_event("cpu_op", "my\x1b[2Jop", 1, 5)])))
    text = run("describe", "--trace", strange, "--events").out
    assert "my?[2Jop" in text and "unknown; recorded as cpu_op" in text and "\x1b" not in text
    trace = DATA / "h200_mlp_train" / "trace.json.gz"
    text = run("describe", "--trace", trace, "--events").out
    assert "ProfilerStep#*" in text and text.index("program's loop") < text.index("\noperator") < text.index("runtime call")
    assert text.splitlines()[-1].startswith("100.00% of events known")
    limited = run("describe", "--trace", trace, "--events", "--row-limit", "2").out
    assert "ProfilerStep#*" in limited and "more names: --row-limit -1" in limited and "aten::mm" not in limited


def test_rules_that_names_point_to_have_pages():
    pages = {path.stem for path in (SOURCE / "docs/rules").glob("*.md")}
    tables = (SOURCE / "src/lanescope/names/events").glob("*.cpp")
    rules = {rule for table in tables for rule in re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', table.read_text())}
    assert len(rules) > 20 and rules <= pages


def test_table_names_are_readable_unless_raw_is_asked_for(run):
    trace = DATA / "h200_64_bf16_warm_eager" / "trace.json"
    readable, raw = "add, bf16 (ATen elementwise, vectorized x8)", "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT"
    text = run("table", trace).out
    assert readable in text and raw not in text and "--names raw" in text
    assert raw in run("table", trace, "--names", "raw").out
    torch_style = run("table", trace, "--style", "torch").out
    assert raw in torch_style and readable not in torch_style
    assert run("table", trace, "--style", "torch", "--names", "raw").out == torch_style
    assert readable in run("table", trace, "--style", "torch", "--names", "readable").out
    rows = json.loads(run("table", trace, "--json").out)["rows"]
    assert {row["readable_name"]: row["name"] for row in rows if "readable_name" in row}[
        "GEMM 64x8x64 NNT (cuBLASLt nvjet, sm90)"] == raw
    assert readable + "  void at::native::vectorized" in run("tree", trace).out


# --- info -------------------------------------------------------------------------------------------------------------


def test_info_names_devices_steps_and_damage(run, matmul_trace, tmp_path):
    text = run("info", matmul_trace).out
    assert "Test GPU" in text and "ProfilerStep" not in text and re.search(r"steps\s+1", text)
    cut = tmp_path / "cut.json"
    cut.write_bytes(matmul_trace.read_bytes()[:-60])
    ran = run("info", cut)
    assert ran.code == 0 and ran.err == "" and "truncated-file" in ran.out
    document = json.loads(run("info", cut, "--json").out)
    assert document["lanescope"]["command"] == "info"


# --- convert ----------------------------------------------------------------------------------------------------------


def test_convert_gives_the_same_table_and_tree(run, matmul_trace, tmp_path):
    for name in ("clean.json", "clean.json.gz", "clean.json.zst"):
        ran = run("convert", matmul_trace, name)
        if name.endswith(".zst") and "zstd" in ran.err:
            continue  # built without libzstd, and said so
        assert ran.code == 0 and ran.out.startswith(f"wrote {name}: "), ran
        assert run("table", name, "--json").out == run("table", matmul_trace, "--json").out
        assert run("tree", name).out == run("tree", matmul_trace).out
    assert gzip.decompress((tmp_path / "clean.json.gz").read_bytes()) == (tmp_path / "clean.json").read_bytes()
    json.loads((tmp_path / "clean.json").read_text())


def test_convert_to_standard_output_and_from_standard_input(run, matmul_trace):
    ran = run("convert", "-", "-", stdin=matmul_trace.read_bytes())
    assert ran.code == 0 and ran.err == "" and len(json.loads(ran.out)["traceEvents"]) >= 5


def test_convert_never_writes_over_a_file_unasked(run, matmul_trace, tmp_path):
    before = matmul_trace.read_bytes()
    ran = run("convert", matmul_trace, matmul_trace)
    assert ran.code == 2 and "--force writes over it" in ran.complaint()
    assert matmul_trace.read_bytes() == before
    assert run("convert", matmul_trace, matmul_trace, "--force").code == 0
    assert "aten::mm" in run("table", matmul_trace).out


def test_convert_writes_no_format_that_is_only_recorded(run, matmul_trace, tmp_path):
    ran = run("convert", matmul_trace, tmp_path / "out.lspool")
    assert ran.code == 2 and "a file name that ends in .json, .json.gz, .json.zst, " in ran.complaint()
    assert not (tmp_path / "out.lspool").exists()


def test_convert_names_what_is_wrong_with_the_target(run, matmul_trace, tmp_path):
    assert "found a folder" in run("convert", matmul_trace, tmp_path).complaint()
    assert "found no 'no/such'" in run("convert", matmul_trace, "no/such/x.json").complaint()
    if os.path.isdir("/proc/self"):
        ran = run("convert", matmul_trace, "/proc/x.json")
        assert ran.code == 1 and ran.out == "" and ran.complaint()


def test_a_recording_of_a_folder_is_converted_in_pieces_like_one_that_is_named(run, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    packed = pathlib.Path(__file__).parent.parent / "data" / "spools" / "layout5_gpu.lspool.gz"
    (folder / "a.lspool").write_bytes(gzip.decompress(packed.read_bytes()))
    for source in (folder, folder / "a.lspool"):
        ran = run("--self-profile", f"{source.name}.profile.json", "convert", source, f"{source.name}.json")
        assert ran.code == 0, ran.err
        stages = json.loads((tmp_path / f"{source.name}.profile.json").read_text())["traceEvents"]
        assert "read trace" not in {stage.get("name") for stage in stages}  # as a whole, in memory
    texts = [(tmp_path / name).read_text() for name in ("traces.json", "a.lspool.json")]
    assert texts[0].replace("traces.json", "") == texts[1].replace("a.lspool.json", "")


# --- recover ----------------------------------------------------------------------------------------------------------


def test_recover_names_what_it_did_not_find(run, tmp_path, matmul_trace):
    assert "found no 'nowhere'" in run("recover", "nowhere").complaint()
    ran = run("recover", tmp_path)
    assert ran.code == 1 and "found none" in ran.complaint()  # docs/cli.md: nothing recorded
    ran = run("recover", matmul_trace)
    assert ran.code == 2 and ran.complaint()




def test_recover_opens_what_a_killed_process_left(run, tmp_path):
    """Through the installed Python package; the C++ recorder's own tests kill at random moments."""
    probe = subprocess.run([sys.executable, "-c", "import lanescope, torch"], capture_output=True, check=False,
                           env=clean_environment())
    if probe.returncode != 0:
        pytest.skip("needs a Python with torch and the lanescope package: PYTHONPATH=<build>/python")
    script = tmp_path / "train.py"
    script.write_text("import os, signal, torch\n"
                      "x = torch.randn(8, 8)\n"
                      "for _ in range(50): torch.mm(x, x)\n"
                      "os.kill(os.getpid(), signal.SIGKILL)\n")
    ran = run("record", "-o", "out", "--", sys.executable, script, timeout=300)
    assert ran.code == -9, ran
    ran = run("recover", "out", "-o", "train.json")
    assert ran.code == 0, ran
    assert "still open" in ran.out and "wrote train.json: " in ran.out
    assert calls_of(run("table", "train.json", "--style", "torch").out)["aten::mm"] == 50
    again = run("recover", "out", "-o", "train.json")
    assert again.code == 2 and "--force" in again.complaint()


# --- self profile -----------------------------------------------------------------------------------------------------


def test_self_profile_writes_a_trace_of_lanescope_that_lanescope_opens(run, matmul_trace):
    plain = run("table", matmul_trace)
    ran = run("--self-profile", "self.json", "table", matmul_trace)
    assert (ran.code, ran.out, ran.err) == (0, plain.out, "")
    calls = calls_of(run("table", "self.json").out)
    assert calls == {"lanescope table": 1, "read trace": 1, "key averages": 1, "table text": 1}


def test_self_profile_names_what_is_wrong_with_its_file(run, matmul_trace):
    for name in ("-", "no/such/self.json"):
        ran = run("--self-profile", name, "table", matmul_trace)
        assert ran.code == 2 and ran.out == "" and "--self-profile" in ran.complaint()
