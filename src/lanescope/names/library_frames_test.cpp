#include "lanescope/names/library_frames.h"

#include <gtest/gtest.h>

namespace lanescope::names {
namespace {

// torch.profiler cuts what sys.path holds off the paths.
TEST(LibraryFramesTest, InstalledPackagesAndPythonItself) {
  for (const char* frame :
       {"torch/nn/modules/linear.py(123): forward", "/opt/build/torch/nn/functional.py(9): linear",
        "torch\\cuda\\__init__.py(1): synchronize", "accelerate/accelerator.py(2300): backward",
        "transformers/trainer.py(31): training_step", "numpy/_core/fromnumeric.py(3): mean",
        "aiter/tuned_gemm.py(395): torch_gemm",
        "keras/src/utils/traceback_utils.py(110): error_handler",
        "requests/sessions.py(500): request",
        "/srv/venv/lib/python3.12/site-packages/mine/a.py(1): f", "copy.py(128): deepcopy",
        "/usr/lib/python3.11/json/encoder.py(5): encode", "contextlib.py(130): __enter__",
        "/usr/lib/python3/dist-packages/yaml/loader.py(2): load", "<built-in method add>",
        "<string>(1): <module>", "<frozen importlib._bootstrap>(1): _call",
        "/tmp/torchinductor_me/dn/cdn.py(9): call"})
    EXPECT_TRUE(is_of_library(frame)) << frame;
}

TEST(LibraryFramesTest, FilesOfTheProgramWhateverTheyAreCalled) {
  for (const char* frame :
       {"train.py(31): step", "models/transformers.py(8): forward", "mytorch/train.py(1): run",
        "datasets/coco.py(9): __getitem__", "/home/me/work/net/copy.py(3): clone_all",
        "net/random.py(5): noise", "vllm/v1/worker/gpu_worker.py(7): execute_model"})
    EXPECT_FALSE(is_of_library(frame)) << frame;
}

}  // namespace
}  // namespace lanescope::names
