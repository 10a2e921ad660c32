// The source of GPU activities: records kernels, copies, memsets, API calls, waits and CUPTI's
// overhead as in codec/activity_layout.h. A separate shared library. The recorder loads it when a
// session wants LANESCOPE_ACTIVITY_CUDA; the CUDA driver loads it by CUDA_INJECTION64_PATH, and
// NVTX by NVTX_INJECTION64_PATH. Plain C, so that anything can load it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define LANESCOPE_CUPTI_EXPORT __attribute__((visibility("default")))

extern "C" {

// The LANESCOPE_RECORD_ABI of this build.
LANESCOPE_CUPTI_EXPORT uint32_t lanescope_cupti_abi(void);

// Registers the source "cupti" with the recorder, without calling CUDA or CUPTI. 0: it is
// registered, now or before; else `line` (ends with 0) says why not.
LANESCOPE_CUPTI_EXPORT int lanescope_cupti_install(char* line, size_t size);

// What GPU recording finds on this machine, as a JSON object: {"cupti_library": path or null,
// "cupti_version": number, "driver_version": number, "subscriber": "free" or what CUPTI answered,
// "problem": text or null, "devices": [deviceProperties]}. Initialises CUDA. 0: it fits in `size`.
LANESCOPE_CUPTI_EXPORT int lanescope_cupti_describe(char* json, size_t size);

// The CUDA driver calls it when it is initialised (CUDA_INJECTION64_PATH). 1: success.
LANESCOPE_CUPTI_EXPORT int InitializeInjection(void);

// NVTX calls it at the program's first NVTX call (NVTX_INJECTION64_PATH), with its table of
// tables. 1: success.
LANESCOPE_CUPTI_EXPORT int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t));

}  // extern "C"
