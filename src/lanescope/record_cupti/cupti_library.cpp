#include "lanescope/record_cupti/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

namespace lanescope::record_cupti {
namespace {
namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};
constexpr std::uint32_t kOldest = 18;  // CUDA 12.0

struct Found {
  std::string_view name;
  std::string path;
};

int find_library_in(dl_phdr_info* info, std::size_t, void* data) {
  Found& found = *static_cast<Found*>(data);
  const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
  const std::size_t slash = path.rfind('/');
  if (!path.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with(found.name))
    return 0;
  found.path = path;
  return 1;
}

// Of the first loaded library whose file name begins so. Empty: there is none.
std::string loaded_path(std::string_view name) {
  Found found{name, {}};
  dl_iterate_phdr(find_library_in, &found);
  return found.path;
}

// The folder of this library; in a wheel, site-packages/lanescope.
fs::path own_folder() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&find_cupti), &self) == 0 || !self.dli_fname) return {};
  std::error_code error;
  return fs::absolute(self.dli_fname, error).parent_path();
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const std::string loaded = loaded_path("libcupti.so"); !loaded.empty())
    paths.push_back(loaded);
  if (const char* named = std::getenv("LANESCOPE_CUPTI_LIBRARY"); named && *named)
    paths.emplace_back(named);
  std::vector<fs::path> folders;
  const fs::path packages = own_folder().parent_path() / "nvidia";
  folders.push_back(packages / "cu13" / "lib");
  folders.push_back(packages / "cuda_cupti" / "lib");
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable); home && *home) {
      folders.push_back(fs::path(home) / "lib64");
      folders.push_back(fs::path(home) / "extras" / "CUPTI" / "lib64");
    }
  folders.emplace_back("/usr/local/cuda/lib64");
  folders.emplace_back("/usr/local/cuda/extras/CUPTI/lib64");
  std::error_code error;
  for (const fs::path& folder : folders)
    for (const char* name : kNames)
      if (fs::exists(folder / name, error)) paths.push_back((folder / name).string());
  for (const char* name : kNames) paths.emplace_back(name);
  return paths;
}

bool fill(void* handle, CuptiLibrary* library, std::string* line) {
  bool whole = true;
#define LANESCOPE_LOAD(name)                                                          \
  library->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));          \
  if (!library->name) {                                                               \
    *line = library->path + " has no " #name "; CUPTI of CUDA 12 or newer is needed"; \
    whole = false;                                                                    \
  }
  LANESCOPE_CUPTI_FUNCTIONS(LANESCOPE_LOAD)
#undef LANESCOPE_LOAD
#define LANESCOPE_LOAD(name) \
  library->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));
  LANESCOPE_CUPTI_OPTIONAL_FUNCTIONS(LANESCOPE_LOAD)
#undef LANESCOPE_LOAD
  if (!whole) return false;
  if (library->cuptiGetVersion(&library->version) != CUPTI_SUCCESS || library->version < kOldest) {
    *line = library->path + " is CUPTI version " + std::to_string(library->version) +
            "; version 18 (CUDA 12.0) or newer is needed";
    return false;
  }
  return true;
}

bool load_cupti(CuptiLibrary* library, std::string* line) {
  *line =
      "libcupti was not found; it comes with the CUDA toolkit, with PyTorch for CUDA, or as the "
      "Python package nvidia-cuda-cupti (LANESCOPE_CUPTI_LIBRARY may name it)";
  for (const std::string& path : candidates()) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    *library = {};
    library->path = path;
    if (const std::string loaded = loaded_path("libcupti.so"); !loaded.empty())
      library->path = loaded;
    if (fill(handle, library, line)) {
      line->clear();
      return true;
    }
  }
  return false;
}

bool load_driver(CudaDriver* driver, std::string* line) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    *line =
        "no NVIDIA driver was found (libcuda.so.1), so the GPU is not recorded; install the "
        "driver, or start the container with GPUs; without a GPU, leave out the activity cuda and "
        "--hardware";
    return false;
  }
  bool whole = true;
#define LANESCOPE_LOAD(name)                                                \
  driver->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  whole = whole && driver->name;
  LANESCOPE_CUDA_FUNCTIONS(LANESCOPE_LOAD)
#undef LANESCOPE_LOAD
  const auto load = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(handle, name));
  };
  load(&driver->cuDeviceTotalMem, "cuDeviceTotalMem_v2");
  load(&driver->cuDeviceGetUuid, "cuDeviceGetUuid");
  load(&driver->cuDeviceGetMigUuid, "cuDeviceGetUuid_v2");
  whole = whole && driver->cuDeviceTotalMem;
  if (!whole) {
    *line = "the NVIDIA driver is older than CUDA 12 needs; install version 525 or newer";
    return false;
  }
  driver->cuDriverGetVersion(&driver->version);
  return true;
}

}  // namespace

const CuptiLibrary* find_cupti(std::string* line) {
  static std::mutex mutex;
  static CuptiLibrary library;  // guarded by mutex until it is found, then constant
  static bool found = false;
  const std::lock_guard lock(mutex);
  if (!found) found = load_cupti(&library, line);
  return found ? &library : nullptr;
}

const CudaDriver* find_driver(std::string* line) {
  static std::mutex mutex;
  static CudaDriver driver;  // guarded by mutex until it is found, then constant
  static bool found = false;
  const std::lock_guard lock(mutex);
  if (!found) found = load_driver(&driver, line);
  return found ? &driver : nullptr;
}

int cuda_runtime_version() {
  const std::string path = loaded_path("libcudart.so");
  void* const handle = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return 0;
  using GetVersion = int (*)(int*);  // of cuda_runtime_api.h
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(handle, "cudaRuntimeGetVersion"));
  int version = 0;
  if (get_version && get_version(&version) != 0) version = 0;
  dlclose(handle);
  return version;
}

}  // namespace lanescope::record_cupti
