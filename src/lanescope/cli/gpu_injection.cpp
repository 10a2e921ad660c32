#include "lanescope/cli/gpu_injection.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "lanescope/record/record_abi.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

constexpr char kLibraryName[] = "liblanescope_record_cupti.so";
constexpr char kCudaVariable[] = "CUDA_INJECTION64_PATH";
constexpr char kNvtxVariable[] = "NVTX_INJECTION64_PATH";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_ours(const std::string& path) {
  return fs::path(path).filename().string().starts_with("liblanescope_record_cupti.");
}

// True: the variable now names our library.
bool take(const char* name, const std::string& library) {
  const std::string before = variable(name);
  if (!before.empty() && !is_ours(before)) return false;
  setenv(name, library.c_str(), 1);
  return true;
}

}  // namespace

std::string find_cupti_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&lanescope_record_abi), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  std::error_code failed;
  const fs::path loaded = fs::absolute(info.dli_fname, failed);
  const fs::path real = fs::canonical(loaded, failed);
  for (const fs::path& folder : {loaded.parent_path(), real.parent_path(),
                                 real.parent_path().parent_path() / "record_cupti"}) {
    const fs::path candidate = folder / kLibraryName;
    if (!folder.empty() && fs::is_regular_file(candidate, failed))
      return candidate.lexically_normal().string();
  }
  return "";
}

std::string foreign_injection() {
  const std::string path = variable(kCudaVariable);
  return path.empty() || is_ours(path) ? "" : path;
}

std::vector<std::string> set_injection(const std::string& library) {
  std::vector<std::string> lines;
  if (!take(kCudaVariable, library)) {
    lines.push_back(
        fmt::format("the GPU is not recorded: {} names another tool, '{}'; unset it to record the "
                    "GPU with lanescope. The CPU is recorded",
                    kCudaVariable, variable(kCudaVariable)));
    return lines;
  }
  if (!take(kNvtxVariable, library)) {
    lines.push_back(
        fmt::format("NVTX ranges are not recorded: {} names another tool, '{}'; unset "
                    "it to record them",
                    kNvtxVariable, variable(kNvtxVariable)));
  }
  setenv("LANESCOPE_RECORD_NATIVE", "1", 1);
  setenv("LANESCOPE_RECORD_OWNER", "0000000000", 1);
  return lines;
}

bool is_machine_code(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic) && std::string_view(magic, 4) ==
                                               "\x7f"
                                               "ELF";
}

bool may_start_python(const std::string& program, const std::vector<std::string>& arguments) {
  const auto is_python = [](const std::string& word) {
    const std::string name = fs::path(word).filename().string();
    return name.starts_with("python") || name.starts_with("pypy") || name.ends_with(".py");
  };
  if (std::any_of(arguments.begin(), arguments.end(), is_python)) return true;
  static constexpr std::string_view kLaunchers[] = {
      "bash",    "dash", "env", "fish", "ksh",     "make",    "sh",   "srun",  "mpirun",
      "mpiexec", "time", "zsh", "nice", "numactl", "taskset", "sudo", "xargs", "timeout"};
  const std::string name = fs::path(program).filename().string();
  return std::find(std::begin(kLaunchers), std::end(kLaunchers), name) != std::end(kLaunchers) ||
         !is_machine_code(program);
}

}  // namespace lanescope::cli
