"""Which activities are requested, and the messages when they are impossible. Needs no GPU."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

import pytest

import lanescope
from lanescope import ProfilerActivity, _activities, _autorecord, profile, record, record_function, supported_activities

HAS_GPU = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")
CPU_AND_CUDA = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
ALL_API = 64  # LANESCOPE_RECORD_ALL_API
DETACH = 128
DETACH_WHERE_TESTED = 256


def record_library() -> ctypes.CDLL:
    return ctypes.CDLL(os.path.join(os.path.dirname(lanescope.__file__), "lib", "liblanescope_record.so"))


TEXT_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


class Source(ctypes.Structure):
    """LanescopeActivitySource."""

    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("activities", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("self", ctypes.c_void_p),
        ("prepare", TEXT_CALL),
        ("start", TEXT_CALL),
        ("stop", ctypes.c_void_p),
        ("cost_line", ctypes.c_void_p),
        ("flush", ctypes.c_void_p),
    ]


@pytest.fixture
def cuda_source():
    """A source of CUDA activity; gives the options of each window that it was started for."""
    library = record_library()
    abi = library.lanescope_record_abi()
    started = []

    @TEXT_CALL
    def start(_self, options, _line, _size):
        started.append(options)
        return 0

    source = Source(abi, 2, b"test source", None, TEXT_CALL(0), start, None, None, None)
    assert library.lanescope_register_source(ctypes.byref(source)) == 0
    yield started
    library.lanescope_unregister_source(ctypes.byref(source))


@pytest.fixture
def said():
    """Warnings, each message at most once a process forgotten."""
    import lanescope.profiler as module

    module._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(w.message) for w in caught]


def run(**arguments):
    with profile(**arguments) as prof:
        with record_function("x"):
            pass
    assert [row.key for row in prof.key_averages()] == ["x"]


@pytest.mark.parametrize(
    "arguments, options",
    [
        ({}, [DETACH_WHERE_TESTED]),
        ({"activities": CPU_AND_CUDA}, [DETACH_WHERE_TESTED]),
        ({"activities": [ProfilerActivity.CUDA], "all_api": True}, [ALL_API | DETACH_WHERE_TESTED]),
        ({"all_api": True, "detach": False}, [ALL_API]),
        ({"detach": True}, [DETACH]),
        ({"last": "10s"}, [0]),
        ({"activities": [ProfilerActivity.CPU]}, []),
    ],
)
def test_activities_and_all_api_reach_the_sources(cuda_source, arguments, options):
    run(**arguments)
    assert cuda_source == options


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_use_cuda_is_heard(cuda_source):
    run(use_cuda=False)
    assert cuda_source == []
    run(use_cuda=True)
    assert cuda_source == [DETACH_WHERE_TESTED]


@pytest.mark.skipif(HAS_GPU, reason="needs a machine without a GPU")
def test_without_a_gpu_the_default_is_silent_and_a_wish_is_one_warning(said):
    run()
    assert said() == []
    run(activities=CPU_AND_CUDA)
    run(activities=CPU_AND_CUDA)
    (line,) = said()
    expected = "cupti: " if _activities.cupti_library() else "CUDA activity is not recorded: this installation"
    assert line.startswith("lanescope: " + expected)


def test_an_installation_without_cupti_supports_the_cpu(said, monkeypatch):
    monkeypatch.setattr(_activities, "cupti_library", lambda: "")
    assert supported_activities() == {ProfilerActivity.CPU}
    profile()
    profile(activities=[ProfilerActivity.CPU])
    assert said() == []
    run(activities=CPU_AND_CUDA)
    assert [line for line in said() if "cupti: " in line] == []  # said once, in the words below
    assert said() == [
        "lanescope: CUDA activity is not recorded: this installation was built without CUPTI; `lanescope doctor` says how to get it"
    ]


def test_supported_activities_need_the_build_the_gpu_and_torch(monkeypatch):
    library = os.path.join(os.path.dirname(lanescope.__file__), "lib", "liblanescope_record_cupti.so")
    assert _activities.cupti_library() == (library if os.path.exists(library) else "")
    answers = {"cupti_library": "there", "has_gpu": True, "torch_sees_cuda": True}
    for name, answer in answers.items():
        monkeypatch.setattr(_activities, name, lambda answer=answer: answer)
    assert supported_activities() == {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    for name in answers:
        with monkeypatch.context() as missing:
            missing.setattr(_activities, name, lambda: False)
            assert supported_activities() == {ProfilerActivity.CPU}, name


def test_supported_activities_are_never_more_than_torchs():
    torch = pytest.importorskip("torch")
    assert supported_activities() <= torch.profiler.supported_activities()


@pytest.mark.skipif(HAS_GPU, reason="needs a machine without a GPU")
def test_a_program_that_asks_before_it_uses_the_gpu_does_not_use_it(run_python):
    run_python(
        code="""
import sys
from lanescope import ProfilerActivity, supported_activities
assert supported_activities() == {ProfilerActivity.CPU} and "torch" not in sys.modules
try:
    import torch
except ImportError:
    sys.exit()
assert supported_activities() == torch.profiler.supported_activities()
if ProfilerActivity.CUDA in supported_activities():
    torch.ones(2).cuda()
"""
    )


@pytest.mark.parametrize(
    ("visible", "files", "expected"),
    [
        (None, ["/dev/nvidia0"], True),
        ("1,2", ["/dev/nvidia0"], True),
        ("", ["/dev/nvidia0"], False),
        ("-1", ["/dev/nvidia0"], False),
        (None, [], False),
        (None, ["/dev/nvidiactl"], False),
    ],
)
def test_a_gpu_is_found_by_its_device_file(monkeypatch, visible, files, expected):
    import fnmatch

    monkeypatch.setattr(_activities.glob, "glob", lambda pattern: fnmatch.filter(files, pattern))
    monkeypatch.setattr(_activities.os.path, "exists", lambda path: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert _activities.has_gpu() is expected


@pytest.mark.parametrize(("line", "expected"), [("cuda: Optional[str] = None", False), ("cuda = '12.8'", True), ("", True)])
def test_a_torch_that_is_not_imported_says_in_a_file_whether_it_has_cuda(tmp_path, monkeypatch, line, expected):
    (tmp_path / "version.py").write_text(f"__version__ = '2.13.0'\n{line}\nhip: Optional[str] = None\n")
    monkeypatch.setattr(_activities, "torch_directory", lambda: str(tmp_path))
    monkeypatch.setitem(_activities.sys.modules, "torch._C._autograd", None)
    assert _activities.torch_sees_cuda() is expected
    monkeypatch.setattr(_activities, "torch_directory", lambda: None)
    assert _activities.torch_sees_cuda() is True


def test_other_activities_are_named(said):
    profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU])
    assert said() == ["lanescope: XPU activity is not recorded by this version; the CPU side is"]


# -- lanescope record --------------------------------------------------------------------------------------------------


def test_record_passes_activities_on(tmp_path):
    env = record.environment(str(tmp_path), activities="cuda", all_api=True, base={})
    assert env["LANESCOPE_RECORD_ACTIVITIES"] == "cuda" and env["LANESCOPE_RECORD_ALL_API"] == "1"
    assert "LANESCOPE_RECORD_ACTIVITIES" not in record.environment(str(tmp_path), base={})
    for wrong in ("", "gpu", "cpu,cpu", "cpu,"):
        with pytest.raises(ValueError, match="cpu,cuda"):
            record.environment(str(tmp_path), activities=wrong, base={})


def test_a_child_of_a_natively_recorded_process_is_left_alone(tmp_path):
    for owner, children, recorded in [("0000000000", "", True), ("0000000001", "", False), ("0000000001", "1", True)]:
        env = record.environment(str(tmp_path), children=children == "1")
        env["LANESCOPE_RECORD_OWNER"] = owner
        done = subprocess.run([sys.executable, "-c", "pass"], env=env, capture_output=True, text=True, timeout=300, check=True)
        assert ("nothing was recorded" in done.stderr) == recorded, done.stderr


def test_the_driver_loads_the_library_of_this_package(monkeypatch):
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/elsewhere/liblanescope_record_cupti.so")
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/other.so")
    monkeypatch.setattr(_autorecord, "cupti_library", lambda: "/here/liblanescope_record_cupti.so")
    _autorecord._select_injected_library()
    assert os.environ["CUDA_INJECTION64_PATH"] == "/here/liblanescope_record_cupti.so"
    assert os.environ["NVTX_INJECTION64_PATH"] == "/opt/other.so"
    monkeypatch.setattr(_autorecord, "cupti_library", lambda: "")
    _autorecord._select_injected_library()
    assert "CUDA_INJECTION64_PATH" not in os.environ


def test_the_library_for_programs_without_python_finds_its_other_half_wherever_it_lies(tmp_path) -> None:
    """The CUDA driver loads it into programs that know no lanescope: the build folder may be gone by then."""
    package = pathlib.Path(lanescope.__file__).parent / "lib"
    if not (package / "liblanescope_record_cupti.so").exists():
        pytest.skip("needs a package built with CUPTI")
    if (package / "liblanescope_record_cupti.so").is_symlink():
        pytest.skip("needs an installed package, not that of the build folder")
    for name in ("liblanescope_record_cupti.so", "liblanescope_record.so"):
        shutil.copy(package / name, tmp_path)
    loading = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", loading, str(tmp_path / "liblanescope_record_cupti.so")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    assert set(re.findall(r"\S*/liblanescope_record\.so\S*", done.stdout)) == {str(tmp_path / "liblanescope_record.so")}
