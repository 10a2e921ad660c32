"""`lanescope doctor` on machines of every kind: none has a GPU, some have a fake one (fake_gpu.cpp)."""

from __future__ import annotations

import json
import os
import re
import time

import pytest

from test_cli_native_recording import built, fake_gpu, run_with  # noqa: F401  (a fixture among them)

HAS_GPU = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def lines_of(text: str) -> dict:
    """name -> (health, text), of the lines of checks."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(ok|note|problem) +(other tools|\S+) +(.*)", line)
        if match:
            found[match[2]] = (match[1], match[3])
    return found


@pytest.mark.skipif(HAS_GPU, reason="needs a machine without a GPU")
def test_without_a_gpu_it_says_so_and_the_rest_works(run):
    ran = run("doctor", "--python", os.sys.executable)
    checks = lines_of(ran.out)
    assert ran.err == ""
    for name in ("driver", "gpu", "cupti", "probe"):
        health, text = checks[name]
        assert health == "note"
        assert text.startswith("no NVIDIA driver (libcuda.so.1 not found): GPU recording is off, CPU recording works")
    for name in ("recorder", "disk", "clock"):
        assert checks[name][0] in ("ok", "note"), ran.out
    assert float(re.search(r"one reading takes ([\d.]+) ns", checks["clock"][1]).group(1)) > 0
    assert ran.code == 0 and ran.out.endswith("what is here works\n")


def test_json_has_the_same_checks(run):
    text, data = run("doctor"), json.loads(run("doctor", "--json").out)
    assert data["lanescope"] == {"schema": 1, "command": "doctor"}
    assert [check["name"] for check in data["checks"]] == list(lines_of(text.out))
    assert data["works"] == (text.code == 0)
    assert set(data["gpu"]) == {"driver_version", "cupti_library", "cupti_version", "probed", "probe_kernel_count",
                                "probe_api_call_count", "probe_kernel_ns", "devices"}


def test_a_folder_that_cannot_be_written_is_a_problem(run, tmp_path):
    (tmp_path / "file").touch()
    ran = run("doctor", env={"TMPDIR": str(tmp_path / "file")})
    assert ran.code == 1
    assert lines_of(ran.out)["disk"][0] == lines_of(ran.out)["recorder"][0] == "problem"
    assert "do: name another one in TMPDIR" in lines_of(ran.out)["disk"][1]


def test_other_tools_are_named(run):
    ran = run("doctor", env={"CUDA_INJECTION64_PATH": "/opt/other.so"})
    assert ran.code == 1
    assert lines_of(ran.out)["other tools"] == (
        "problem", "CUDA_INJECTION64_PATH names another tool, '/opt/other.so', which the driver loads instead of lanescope; "
        "do: unset CUDA_INJECTION64_PATH")
    assert run("doctor", env={"NSYS_PROFILING_SESSION_ID": "1"}).code == 1


def test_a_python_without_the_package_is_a_note_one_that_is_missing_a_problem(run, tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nprintf '\\nlanescope-answer:\\nversion=3.9.1\\npackage_problem=none here\\n'\n")
    python.chmod(0o755)
    ran = run("doctor", "--python", str(python))
    health, text = lines_of(ran.out)["python"]
    assert health == "note" and "3.9.1 has no package lanescope (none here)" in text and "pip install" in text
    ran = run("doctor", "--python", "/no/such/python")
    assert lines_of(ran.out)["python"][0] == "problem" and ran.code == 1
    ran = run("doctor", env={"PATH": str(tmp_path / "empty")})
    assert lines_of(ran.out)["python"][0] == "note"


def test_torch_without_observer_and_compiler_is_a_problem(run, tmp_path):
    python = tmp_path / "python3"
    answer = "version=3.11.2\npackage=0.1.0\ncuda=0\ntorch=2.9.0\nobserver=/cache/x.so\nbuilt={}\n{}\n"
    for built_already, rest, health in [("1", "observer_problem=no c++", "ok"), ("0", "compiler=g++", "note"),
                                        ("0", "observer_problem=no c++", "problem")]:
        text = answer.format(built_already, rest).replace("\n", "\\n")
        python.write_text(f"#!/bin/sh\nprintf '\\nlanescope-answer:\\n{text}'\n")
        python.chmod(0o755)
        checks = lines_of(run("doctor", "--python", str(python)).out)
        assert checks["torch"] == ("ok", "2.9.0") and checks["observer"][0] == health


# --- a fake GPU ------------------------------------------------------------------------------------------------------


def doctor(fake_gpu, tmp_path, broken: str = "", **env):  # noqa: F811
    done = run_with(fake_gpu, tmp_path, "doctor", FAKE_GPU=broken, PATH=str(tmp_path), **env)
    assert done.stderr == ""
    assert [name for name in os.listdir(os.environ.get("TMPDIR", "/tmp")) if name.startswith("lanescope_doctor_")] == []
    return done.returncode, lines_of(done.stdout)


def test_a_kernel_comes_back(fake_gpu, tmp_path):  # noqa: F811
    begin = time.monotonic()
    code, checks = doctor(fake_gpu, tmp_path)
    elapsed_us = 1e6 * (time.monotonic() - begin)
    assert checks["driver"] == ("ok", "CUDA 13.0")
    assert checks["gpu"] == ("ok", "0: Fake GPU, 10.0 GiB, compute capability 9.0")
    assert checks["cupti"] == ("ok", "/fake/libcupti.so.13 version 13.0.1")
    assert checks["probe"][0] == "ok", checks
    # A tenth of a wait of 2 ms and more.
    microseconds = float(re.fullmatch(r"a kernel of ([\d.]+) us came back with 1 API call", checks["probe"][1]).group(1))
    assert 150 < microseconds < elapsed_us / 10
    assert code == 0
    data = json.loads(run_with(fake_gpu, tmp_path, "doctor", "--json", PATH=str(tmp_path)).stdout)["gpu"]
    assert (data["probe_kernel_count"], data["probe_api_call_count"], data["probed"]) == (1, 1, True)
    assert data["devices"] == [{"name": "Fake GPU", "memory_bytes": 10 << 30, "compute_major": 9, "compute_minor": 0,
                                "is_mig": False}]


@pytest.mark.parametrize("broken, name, health, part", [
    ("crash", "driver", "problem", "the driver was started and it ended by signal 11"),
    ("mismatch", "driver", "problem", "error 803 (system has unsupported display driver"),
    pytest.param("no_device", "driver", "note", "a GPU is not", marks=pytest.mark.skipif(HAS_GPU, reason="needs a machine without a GPU")),
    ("mig", "gpu", "note", "a MIG slice"),
    ("no_cupti", "cupti", "problem", "libcupti.so was not found"),
    ("other_version", "cupti", "problem", "belongs to another version of lanescope"),
    ("no_permission", "permission", "problem", "lets only administrators profile"),
    ("no_context", "probe", "problem", "cuDevicePrimaryCtxRetain: error 2 (fake)"),
    ("nothing_comes_back", "probe", "problem", "the recording holds 0 kernels"),
    ("short", "probe", "problem", "was recorded with 0 ns, which no GPU does"),
])
def test_what_is_broken_is_named(fake_gpu, tmp_path, broken, name, health, part):  # noqa: F811
    code, checks = doctor(fake_gpu, tmp_path, broken)
    assert checks[name][0] == health and part in checks[name][1], checks
    assert code == (1 if health == "problem" else 0)
    if health == "problem":
        assert "; do: " in checks[name][1]


def test_a_taken_cupti_is_named_with_the_probe(fake_gpu, tmp_path):  # noqa: F811
    _, checks = doctor(fake_gpu, tmp_path, "taken")
    assert checks["probe"][0] == "ok"  # it recorded all the same
    done = run_with(fake_gpu, tmp_path, "doctor", FAKE_GPU="nothing_comes_back", PATH=str(tmp_path))
    assert "end other profilers of this GPU" in done.stdout


def test_a_machine_with_a_gpu_and_no_cupti_library(fake_gpu, tmp_path):  # noqa: F811
    (tmp_path / "lib" / "liblanescope_record_cupti.so").unlink()
    code, checks = doctor(fake_gpu, tmp_path)
    assert code == 1 and checks["cupti"][0] == "problem"
    assert "built without CUPTI" in checks["cupti"][1] and "LANESCOPE_WITH_CUPTI=ON" in checks["cupti"][1]
