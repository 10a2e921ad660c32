#include "lanescope/record_cupti/pm_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace lanescope::record_cupti {
namespace {

template <typename Function>
bool load(void* library, const char* name, Function* into) {
  *into = reinterpret_cast<Function>(dlsym(library, name));
  return *into != nullptr;
}

bool load_nvml(NvmlLibrary* nvml) {
  const char* named = std::getenv("LANESCOPE_NVML_LIBRARY");
  void* library = dlopen(named && *named ? named : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  load(library, "nvmlDeviceGetMaxClockInfo", &nvml->nvmlDeviceGetMaxClockInfo);
  load(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->nvmlDeviceGetEnforcedPowerLimit);
  load(library, "nvmlDeviceGetMemoryBusWidth", &nvml->nvmlDeviceGetMemoryBusWidth);
  load(library, "nvmlDeviceGetMaxPcieLinkGeneration", &nvml->nvmlDeviceGetMaxPcieLinkGeneration);
  load(library, "nvmlDeviceGetMaxPcieLinkWidth", &nvml->nvmlDeviceGetMaxPcieLinkWidth);
  load(library, "nvmlDeviceGetNvLinkState", &nvml->nvmlDeviceGetNvLinkState);
  load(library, "nvmlDeviceGetFieldValues", &nvml->nvmlDeviceGetFieldValues);
  if (!load(library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->nvmlDeviceGetClockReasons))
    load(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->nvmlDeviceGetClockReasons);
  const bool whole = load(library, "nvmlInit_v2", &nvml->nvmlInit) &&
                     load(library, "nvmlDeviceGetHandleByUUID", &nvml->nvmlDeviceGetHandleByUUID) &&
                     load(library, "nvmlDeviceGetClockInfo", &nvml->nvmlDeviceGetClockInfo) &&
                     load(library, "nvmlDeviceGetPowerUsage", &nvml->nvmlDeviceGetPowerUsage) &&
                     load(library, "nvmlDeviceGetTemperature", &nvml->nvmlDeviceGetTemperature);
  return whole && nvml->nvmlInit() == 0;
}

#if LANESCOPE_HAS_PM_SAMPLING
bool load_pm(PmLibrary* pm, std::string* line) {
  const CuptiLibrary* cupti = find_cupti(line);
  if (!cupti) return false;
  void* library = dlopen(cupti->path.c_str(), RTLD_NOW | RTLD_LOCAL);
  bool whole = library != nullptr;
#define LANESCOPE_LOAD(name) whole = whole && load(library, #name, &pm->name);
  LANESCOPE_PM_FUNCTIONS(LANESCOPE_LOAD)
#undef LANESCOPE_LOAD
  if (!whole)
    *line = cupti->path +
            " cannot sample hardware counters; CUPTI of CUDA 12.6 or newer is needed "
            "(LANESCOPE_CUPTI_LIBRARY may name it)";
  return whole;
}
#endif

}  // namespace

#if LANESCOPE_HAS_PM_SAMPLING
const PmLibrary* find_pm_library(std::string* line) {
  static PmLibrary library;  // one thread loads it, before any device is opened
  static bool found = false;
  if (!found) found = load_pm(&library, line);
  return found ? &library : nullptr;
}
#endif

const NvmlLibrary* find_nvml() {
  static NvmlLibrary library;
  static const bool found = load_nvml(&library);
  return found ? &library : nullptr;
}

}  // namespace lanescope::record_cupti
