// These belong to a library: files in site-packages, dist-packages and lib/python3.*, built-in functions, and, as torch.profiler cuts the
// paths of packages short, paths that begin with the name of a well-known package or module of Python. Serving programs
// (vllm, sglang) are programs.
#include "lanescope/names/library_frames.h"

#include <algorithm>
#include <array>

namespace lanescope::names {
namespace {

// Names under which a program is not likely to keep its own files: not "datasets", "profile" or "test".
constexpr auto kPackages = std::to_array<std::string_view>({
    "accelerate",
    "aiter",
    "apex",
    "bitsandbytes",
    "cupy",
    "cv2",
    "deep_gemm",
    "deepspeed",
    "diffusers",
    "einops",
    "fairscale",
    "flash_attn",
    "flash_mla",
    "flashinfer",
    "fsspec",
    "h5py",
    "httpx",
    "huggingface_hub",
    "ignite",
    "jax",
    "joblib",
    "keras",
    "lanescope",
    "lightning",
    "lightning_fabric",
    "lightning_utilities",
    "liger_kernel",
    "matplotlib",
    "numba",
    "numpy",
    "omegaconf",
    "pandas",
    "peft",
    "PIL",
    "pyarrow",
    "pytorch_lightning",
    "requests",
    "safetensors",
    "scipy",
    "sentence_transformers",
    "sgl_kernel",
    "sklearn",
    "tensorboard",
    "tilelang",
    "timm",
    "tokenizers",
    "torch_geometric",
    "torch_npu",
    "torchao",
    "torchaudio",
    "torchdata",
    "torch_guard",  // of aiter, with its folder cut off
    "torchmetrics",
    "torchvision",
    "tqdm",
    "transformer_engine",
    "transformers",
    "triton",
    "trl",
    "typing_extensions",
    "urllib3",
    "wandb",
    "xformers",
    "zmq",
});

constexpr auto kOfPython = std::to_array<std::string_view>({
    "_collections_abc",
    "_weakrefset",
    "abc",
    "argparse",
    "ast",
    "asyncio",
    "base64",
    "bisect",
    "codecs",
    "collections",
    "concurrent",
    "contextlib",
    "copy",
    "copyreg",
    "csv",
    "ctypes",
    "dataclasses",
    "datetime",
    "decimal",
    "encodings",
    "enum",
    "fractions",
    "functools",
    "genericpath",
    "glob",
    "gzip",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "importlib",
    "inspect",
    "json",
    "linecache",
    "locale",
    "logging",
    "multiprocessing",
    "ntpath",
    "operator",
    "os",
    "pathlib",
    "pickle",
    "posixpath",
    "pprint",
    "queue",
    "random",
    "re",
    "reprlib",
    "runpy",
    "secrets",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "socketserver",
    "sqlite3",
    "ssl",
    "stat",
    "statistics",
    "struct",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "timeit",
    "tokenize",
    "traceback",
    "types",
    "typing",
    "unittest",
    "urllib",
    "uuid",
    "warnings",
    "weakref",
    "xml",
    "zipfile",
});

template <std::size_t size>
bool holds(const std::array<std::string_view, size>& names, std::string_view wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

}  // namespace

bool is_of_library(std::string_view frame) {
  for (const std::string_view part : {"site-packages", "dist-packages", "lib/python3",
                                      "torchinductor", "<built-in", "<string>", "<frozen "})
    if (frame.find(part) != std::string_view::npos) return true;
  const std::string_view path = frame.substr(0, frame.find(".py("));
  // torch may lie anywhere: many build it themselves.
  for (std::size_t at = path.find("torch"); at != std::string_view::npos;
       at = path.find("torch", at + 1)) {
    const std::size_t end = at + std::string_view("torch").size();
    const auto is_cut = [](char c) { return c == '/' || c == '\\'; };
    if ((at == 0 || is_cut(path[at - 1])) && end < path.size() && is_cut(path[end])) return true;
  }
  const std::string_view first = path.substr(0, path.find_first_of("/\\"));
  return holds(kPackages, first) || holds(kOfPython, first);
}

}  // namespace lanescope::names
