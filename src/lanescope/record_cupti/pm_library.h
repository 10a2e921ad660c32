// Functions of libcupti that sample hardware counters of a whole GPU (CUPTI's PM sampling; CUDA
// 12.6 and newer), and of libnvidia-ml. Nothing is linked.
#pragma once
#if __has_include(<cupti_pmsampling.h>)
#define LANESCOPE_HAS_PM_SAMPLING 1
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#else
#define LANESCOPE_HAS_PM_SAMPLING 0
#endif

#include <string>

#include "lanescope/record_cupti/cupti_library.h"

namespace lanescope::record_cupti {

#if LANESCOPE_HAS_PM_SAMPLING
#define LANESCOPE_PM_FUNCTIONS(X)              \
  X(cuptiGetTimestamp)                         \
  X(cuptiGetResultString)                      \
  X(cuptiProfilerInitialize)                   \
  X(cuptiProfilerDeviceSupported)              \
  X(cuptiDeviceGetChipName)                    \
  X(cuptiProfilerHostInitialize)               \
  X(cuptiProfilerHostDeinitialize)             \
  X(cuptiProfilerHostConfigAddMetrics)         \
  X(cuptiProfilerHostGetConfigImageSize)       \
  X(cuptiProfilerHostGetConfigImage)           \
  X(cuptiProfilerHostGetNumOfPasses)           \
  X(cuptiProfilerHostEvaluateToGpuValues)      \
  X(cuptiPmSamplingGetCounterAvailability)     \
  X(cuptiPmSamplingEnable)                     \
  X(cuptiPmSamplingDisable)                    \
  X(cuptiPmSamplingSetConfig)                  \
  X(cuptiPmSamplingStart)                      \
  X(cuptiPmSamplingStop)                       \
  X(cuptiPmSamplingDecodeData)                 \
  X(cuptiPmSamplingGetCounterDataSize)         \
  X(cuptiPmSamplingCounterDataImageInitialize) \
  X(cuptiPmSamplingGetCounterDataInfo)         \
  X(cuptiPmSamplingCounterDataGetSampleInfo)

struct PmLibrary {
#define LANESCOPE_DECLARE(name) decltype(&::name) name = nullptr;
  LANESCOPE_PM_FUNCTIONS(LANESCOPE_DECLARE)
#undef LANESCOPE_DECLARE
};
// The functions of the libcupti that find_cupti() found; it stays loaded. Null: `line` says why.
const PmLibrary* find_pm_library(std::string* line);
#endif

// Our own declarations for libnvidia-ml.so.1, because few machines have its header. The variable
// LANESCOPE_NVML_LIBRARY may name another file. Functions return 0 on success.
struct NvmlFieldValue {  // nvmlFieldValue_t
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int type = 0, result = 0;
  union {
    double real;
    unsigned number;
    unsigned long long wide;
  } value = {.wide = 0};
};
static_assert(sizeof(NvmlFieldValue) == 40);
inline constexpr unsigned kFieldNvLinkSpeed = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
inline constexpr unsigned kMostNvLinks = 36;       // NVML_NVLINK_MAX_LINKS

struct NvmlLibrary {
  using Device = void*;
  int (*nvmlInit)() = nullptr;
  int (*nvmlDeviceGetHandleByUUID)(const char*, Device*) = nullptr;
  int (*nvmlDeviceGetClockInfo)(Device, int, unsigned*) = nullptr;     // 1 SM, 2 memory; MHz
  int (*nvmlDeviceGetMaxClockInfo)(Device, int, unsigned*) = nullptr;  // as above
  int (*nvmlDeviceGetPowerUsage)(Device, unsigned*) = nullptr;         // milliwatts
  int (*nvmlDeviceGetEnforcedPowerLimit)(Device, unsigned*) = nullptr;
  int (*nvmlDeviceGetTemperature)(Device, int, unsigned*) = nullptr;       // 0: the GPU; degrees C
  int (*nvmlDeviceGetMemoryBusWidth)(Device, unsigned*) = nullptr;         // bits
  int (*nvmlDeviceGetMaxPcieLinkGeneration)(Device, unsigned*) = nullptr;  // of GPU and slot
  int (*nvmlDeviceGetMaxPcieLinkWidth)(Device, unsigned*) = nullptr;       // lanes
  int (*nvmlDeviceGetNvLinkState)(Device, unsigned, int*) = nullptr;       // 1: active
  int (*nvmlDeviceGetFieldValues)(Device, int, NvmlFieldValue*) = nullptr;
  int (*nvmlDeviceGetClockReasons)(Device, unsigned long long*) = nullptr;  // kReason...
};
inline constexpr unsigned long long kReasonPower = 0x4 | 0x80;  // software cap, power brake
inline constexpr unsigned long long kReasonHeat = 0x20 | 0x40;  // software, hardware
// Null: not there, too old, or without a GPU.
const NvmlLibrary* find_nvml();

}  // namespace lanescope::record_cupti
