// The source of GPU activities: kernels, copies, memsets, API calls, waits and CUPTI's own overhead
// become records of codec/activity_layout.h. A shared library of its own, loaded by the recorder
// when a session wants LANESCOPE_ACTIVITY_CUDA, by the CUDA driver when CUDA_INJECTION64_PATH names
// it, and by NVTX when NVTX_INJECTION64_PATH does. Plain C, so that anything can load it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define LANESCOPE_CUPTI_EXPORT __attribute__((visibility("default")))

extern "C" {

// LANESCOPE_RECORD_ABI that it was built with.
LANESCOPE_CUPTI_EXPORT uint32_t lanescope_cupti_abi(void);

// Registers the source "cupti" with the recorder; touches neither CUDA nor CUPTI yet. 0: it is
// registered (now or before), else `line` (ends with 0) says why not.
LANESCOPE_CUPTI_EXPORT int lanescope_cupti_install(char* line, size_t size);

// What GPU recording finds on this machine, as a JSON object: {"cupti_library": path or null,
// "cupti_version": number, "driver_version": number, "subscriber": "free" or what CUPTI answered,
// "problem": text or null, "devices": [deviceProperties]}. Initialises CUDA. 0: it fit in `size`.
LANESCOPE_CUPTI_EXPORT int lanescope_cupti_describe(char* json, size_t size);

// The CUDA driver calls it when it is initialised (CUDA_INJECTION64_PATH). 1: success.
LANESCOPE_CUPTI_EXPORT int InitializeInjection(void);

// NVTX calls it at the program's first NVTX call (NVTX_INJECTION64_PATH), with its table of tables.
// 1: success.
LANESCOPE_CUPTI_EXPORT int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t));

}  // extern "C"
