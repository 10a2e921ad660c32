#include "lanescope/model/category.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace lanescope {
namespace {

using Row = std::pair<std::string_view, CategoryKind>;
// Lower case. Old spellings: torch 1.5-1.8 and its TensorBoard plugin; some back ends add runtime
// and driver rows.
constexpr std::array kRows{
    Row{"cpu_op", CategoryKind::kCpuOp},
    Row{"operator", CategoryKind::kCpuOp},
    Row{"user_annotation", CategoryKind::kUserAnnotation},
    Row{"python_function", CategoryKind::kPythonFunction},
    Row{"python_sample", CategoryKind::kPythonSample},
    Row{"python function", CategoryKind::kPythonFunction},
    Row{"cuda_runtime", CategoryKind::kRuntime},
    Row{"runtime", CategoryKind::kRuntime},
    Row{"hip_runtime", CategoryKind::kRuntime},
    Row{"xpu_runtime", CategoryKind::kRuntime},
    Row{"mtia_runtime", CategoryKind::kRuntime},
    Row{"glow_runtime", CategoryKind::kRuntime},
    Row{"privateuse1_runtime", CategoryKind::kRuntime},
    Row{"cuda_driver", CategoryKind::kDriver},
    Row{"xpu_driver", CategoryKind::kDriver},
    Row{"privateuse1_driver", CategoryKind::kDriver},
    Row{"kernel", CategoryKind::kKernel},
    Row{"hpu_op", CategoryKind::kKernel},
    Row{"gpu_memcpy", CategoryKind::kGpuMemcpy},
    Row{"memcpy", CategoryKind::kGpuMemcpy},
    Row{"gpu_memset", CategoryKind::kGpuMemset},
    Row{"memset", CategoryKind::kGpuMemset},
    Row{"gpu_user_annotation", CategoryKind::kGpuUserAnnotation},
    Row{"overhead", CategoryKind::kOverhead},
    Row{"cuda_sync", CategoryKind::kCudaSync},
    Row{"xpu_sync", CategoryKind::kCudaSync},
    Row{"cuda_event", CategoryKind::kCudaEvent},
    Row{"cpu_instant_event", CategoryKind::kCpuInstant},
    Row{"trace", CategoryKind::kTrace},
    Row{"collective_comm", CategoryKind::kCommunication},
    Row{"ac2g", CategoryKind::kFlow},
    Row{"async", CategoryKind::kFlow},
    Row{"async_cpu_to_gpu", CategoryKind::kFlow},
    Row{"async_gpu", CategoryKind::kFlow},
    Row{"fwdbwd", CategoryKind::kFlow},
    Row{"cpu_to_cuda", CategoryKind::kFlow},
};

}  // namespace

CategoryKind category_kind(std::string_view text) {
  if (text.size() > 32) return CategoryKind::kOther;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Row& row : kRows)
    if (row.first == lower) return row.second;
  return CategoryKind::kOther;
}

const char* category_kind_name(CategoryKind kind) {
  if (kind == CategoryKind::kOther) return "other";
  if (kind == CategoryKind::kNone) return "none";
  if (kind == CategoryKind::kFlow) return "flow";
  for (const Row& row : kRows)
    if (row.second == kind) return row.first.data();  // literals end in a zero byte
  return "other";
}

}  // namespace lanescope
