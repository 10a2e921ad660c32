// Tables of functions of libcupti and libcuda. Uses the libcupti that torch has loaded, or loads
// the best one. Nothing is linked, so lanescope also runs on machines without CUDA.
#pragma once
#include <cupti.h>

#include <cstdint>
#include <string>

namespace lanescope::record_cupti {

// Functions every supported CUPTI (12.0 and newer) has.
#define LANESCOPE_CUPTI_FUNCTIONS(X)        \
  X(cuptiGetVersion)                        \
  X(cuptiGetResultString)                   \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityDisable)                   \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityGetNumDroppedRecords)      \
  X(cuptiActivityFlushAll)                  \
  X(cuptiActivityFlushPeriod)               \
  X(cuptiActivitySetAttribute)              \
  X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiSetThreadIdType)                   \
  X(cuptiSubscribe)                         \
  X(cuptiUnsubscribe)                       \
  X(cuptiEnableCallback)                    \
  X(cuptiEnableDomain)                      \
  X(cuptiFinalize)

// Null where the library is older.
#define LANESCOPE_CUPTI_OPTIONAL_FUNCTIONS(X) \
  X(cuptiActivityEnableRuntimeApi)            \
  X(cuptiActivityEnableDriverApi)             \
  X(cuptiGetStreamIdEx)

struct CuptiLibrary {
  std::string path;
  std::uint32_t version = 0;  // as cuptiGetVersion() says: 130001 is CUDA 13.0 update 1, 18 is 12.0
#define LANESCOPE_DECLARE(name) decltype(&::name) name = nullptr;
  LANESCOPE_CUPTI_FUNCTIONS(LANESCOPE_DECLARE)
  LANESCOPE_CUPTI_OPTIONAL_FUNCTIONS(LANESCOPE_DECLARE)
#undef LANESCOPE_DECLARE
};

// Finds it once per process; `line` says why not. The library stays loaded. Order: a loaded one,
// LANESCOPE_CUPTI_LIBRARY (a path), next to the `nvidia` packages that torch installs, CUDA_HOME,
// CUDA_PATH, /usr/local/cuda, by name.
const CuptiLibrary* find_cupti(std::string* line);

// libcuda.so.1, if this machine has a driver.
struct CudaDriver {
  int version = 0;  // 13000 is CUDA 13.0; 0: unknown
#define LANESCOPE_CUDA_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuDriverGetVersion)             \
  X(cuDeviceGetCount)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetName)                \
  X(cuDeviceGetAttribute)           \
  X(cuCtxGetCurrent)                \
  X(cuThreadExchangeStreamCaptureMode)
#define LANESCOPE_DECLARE(name) decltype(&::name) name = nullptr;
  LANESCOPE_CUDA_FUNCTIONS(LANESCOPE_DECLARE)
#undef LANESCOPE_DECLARE
  // Names with a version suffix that cuda.h hides in macros.
  CUresult (*cuDeviceTotalMem)(std::size_t*, CUdevice) = nullptr;
  CUresult (*cuDeviceGetUuid)(CUuuid*, CUdevice) = nullptr;     // of the GPU
  CUresult (*cuDeviceGetMigUuid)(CUuuid*, CUdevice) = nullptr;  // of the MIG instance, if it is one
};
const CudaDriver* find_driver(std::string* line);

// The version of the CUDA runtime that the program has loaded: 13000 is CUDA 13.0. 0: none is loaded, or it is linked into
// the program.
int cuda_runtime_version();

}  // namespace lanescope::record_cupti
