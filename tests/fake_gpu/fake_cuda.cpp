// A libcuda.so.1 with one GPU that has the limits of an H200 and no work to wait for.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <utility>

#undef cuDeviceTotalMem
#undef cuDeviceGetUuid

extern "C" {

CUresult CUDAAPI cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult counted = CUDA_SUCCESS;
void fake_cuda_refuse_to_count(int result) { counted = static_cast<CUresult>(result); }
CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = 1;
  return counted;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(size), "Fake \"GPU\"");
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 1'000'000;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 4096;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  static int one;
  if (auto* notify = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "fake_gpu_get_context")))
    notify();
  *context = reinterpret_cast<CUcontext>(&one);
  return CUDA_SUCCESS;
}
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return CUDA_SUCCESS;
}
// Of the calling thread: 0 global, 2 relaxed.
int fake_cuda_capture_mode(void) { return capture_mode; }
CUresult CUDAAPI cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{141} << 30;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice) {
  std::memset(uuid, 0xab, sizeof *uuid);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid(uuid, device);
}
}
