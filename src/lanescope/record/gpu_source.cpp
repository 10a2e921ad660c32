#include "lanescope/record/gpu_source.h"

#include <dlfcn.h>

#include <cstdint>
#include <filesystem>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {
namespace {
namespace fs = std::filesystem;

constexpr const char* kLibrary = "liblanescope_record_cupti.so";

// Next to liblanescope_record.so; in a build tree, in the folder next to it.
void* open_library() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&lanescope_record_abi), &self) == 0 || !self.dli_fname)
    return nullptr;
  std::error_code error;
  const fs::path folder = fs::canonical(self.dli_fname, error).parent_path();
  for (const fs::path& path : {folder / kLibrary, folder / ".." / "record_cupti" / kLibrary})
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

}  // namespace

std::string load_gpu_source() {
  void* library = open_library();
  if (!library)
    return "this build of lanescope records no GPU (liblanescope_record_cupti.so is missing; it is "
           "built where CUPTI's headers are found)";
  const auto abi = reinterpret_cast<std::uint32_t (*)()>(dlsym(library, "lanescope_cupti_abi"));
  const auto install =
      reinterpret_cast<int (*)(char*, std::size_t)>(dlsym(library, "lanescope_cupti_install"));
  if (!abi || !install || abi() != LANESCOPE_RECORD_ABI)
    return "liblanescope_record_cupti.so is of another version of lanescope";
  char line[512] = "";
  if (install(line, sizeof line) != 0) return line[0] ? line : "it did not say why";
  return {};
}

}  // namespace lanescope::record
