// A machine with a GPU for tests that have none: built as libcuda.so.1 (-DFAKE_DRIVER), the
// functions of the driver that `lanescope doctor` calls, and as liblanescope_record_cupti.so, a
// source that reports what the fake driver ran. FAKE_GPU says what is broken; test_cli_doctor.py.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
bool is(std::string_view what) {
  const char* value = getenv("FAKE_GPU");
  return value && what == value;
}
}  // namespace

#if defined(FAKE_DRIVER)

extern "C" {
__attribute__((visibility("default"))) std::atomic<int> fake_kernels;
}
EXPORT int cuInit(unsigned) {
  if (is("crash")) raise(SIGSEGV);
  if (is("mismatch")) return 803;
  if (is("no_device")) return 100;
  // As the driver does it: the library that the environment names is started.
  if (const char* path = getenv("CUDA_INJECTION64_PATH")) {
    void* const library = dlopen(path, RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    if (auto start =
            library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr)
      start();
  }
  return 0;
}
EXPORT int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
EXPORT int cuGetErrorString(int error, const char** text) {
  *text = error == 803 ? "system has unsupported display driver / cuda driver combination" : "fake";
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) { return *count = 1, 0; }
EXPORT int cuDeviceGet(int* device, int number) { return *device = number, 0; }
EXPORT int cuDeviceGetName(char* name, int size, int) {
  snprintf(name, static_cast<std::size_t>(size), "%s",
           is("mig") ? "Fake GPU MIG 1g.10gb" : "Fake GPU");
  return 0;
}
EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  return *bytes = std::size_t{10} << 30, 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? 9 : 0, 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
  return *context = &fake_kernels, is("no_context") ? 2 : 0;
}
EXPORT int cuCtxSetCurrent(void*) { return 0; }
EXPORT int cuModuleLoadData(void** module, const void* text) {
  const bool has_target = strstr(static_cast<const char*>(text), ".target sm_75") != nullptr;
  return *module = &fake_kernels, has_target ? 0 : 218;
}
EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  return *function = &fake_kernels, strcmp(name, "lanescope_probe") == 0 ? 0 : 500;
}
EXPORT int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**) {
  return ++fake_kernels, 0;
}
EXPORT int cuCtxSynchronize() { return usleep(2000), 0; }

#else

#include "lanescope/codec/activity_layout.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/record/tick_clock.h"
#include "lanescope/record_cupti/cupti_source.h"
#include "lanescope/record_cupti/native_recording.h"

namespace {
namespace spool = lanescope::spool;

std::uint64_t begin_ticks = 0;
int kernels_before = 0;

int kernels_so_far() {
  const auto* kernels = static_cast<std::atomic<int>*>(dlsym(RTLD_DEFAULT, "fake_kernels"));
  if (!kernels) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver) kernels = static_cast<std::atomic<int>*>(dlsym(driver, "fake_kernels"));
  }
  return kernels ? kernels->load() : 0;
}

int prepare(void*, std::uint32_t, char* line, std::size_t size) {
  if (!is("no_permission")) return 0;
  snprintf(line, size, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  return 1;
}

int start(void*, std::uint32_t, char*, std::size_t) {
  begin_ticks = lanescope::record::ticks();
  kernels_before = kernels_so_far();
  return 0;
}

// A launch in the first tenth of the time since start, a kernel in the second.
void report_kernel(std::uint32_t correlation, std::uint64_t begin, std::uint64_t tenth) {
  spool::ApiCallRecord call = {};
  call.begin_tsc = begin;
  call.end_tsc = begin + tenth;
  call.kind = static_cast<std::uint8_t>(spool::ActivityKind::kApiCall);
  call.domain = static_cast<std::uint8_t>(spool::ApiDomain::kDriver);
  call.correlation = correlation;
  call.os_tid = static_cast<std::uint32_t>(getpid());
  call.name_given = 1;
  call.name = lanescope_intern("cuLaunchKernel", 14, nullptr);
  lanescope_source_write(&call, 1);
  struct {
    spool::KernelRecord kernel = {};
    spool::KernelMoreRecord more = {};
  } both;
  both.kernel.begin_tsc = begin + tenth;
  both.kernel.end_tsc = begin + (is("short") ? tenth : 2 * tenth);
  both.kernel.kind = static_cast<std::uint8_t>(spool::ActivityKind::kKernel);
  both.kernel.name = lanescope_intern("lanescope_probe", 15, nullptr);
  both.kernel.correlation = correlation;
  both.kernel.stream = 7;
  both.kernel.block_z = 1;
  both.more.kind = static_cast<std::uint8_t>(spool::ActivityKind::kContinued);
  both.more.grid_x = both.more.grid_y = both.more.grid_z = 1;
  both.more.block_x = both.more.block_y = 1;
  lanescope_source_write(&both, 2);
}

void stop(void*) {
  const std::uint64_t tenth = (lanescope::record::ticks() - begin_ticks) / 10;
  if (is("nothing_comes_back")) return;
  for (int number = kernels_before; number < kernels_so_far(); ++number)
    report_kernel(static_cast<std::uint32_t>(number) + 1, begin_ticks, tenth);
}

const LanescopeActivitySource source = {
    LANESCOPE_RECORD_ABI, LANESCOPE_ACTIVITY_CUDA, "cupti", nullptr, prepare, start, stop, nullptr};
}  // namespace

std::uint32_t lanescope_cupti_abi() { return LANESCOPE_RECORD_ABI + (is("other_version") ? 1 : 0); }

int lanescope_cupti_install(char* line, std::size_t size) {
  const int failed = lanescope_register_source(&source);
  snprintf(line, size, "%s", failed == 0 || failed == 3 ? "" : "the recorder refused");
  return failed == 3 ? 0 : failed;
}

int lanescope_cupti_describe(char* json, std::size_t size) {
  const char* problem = is("no_cupti") ? "\"libcupti.so was not found\"" : "null";
  snprintf(json, size,
           "{\"cupti_library\": \"/fake/libcupti.so.13\", \"cupti_version\": 130001,\n"
           "\"driver_version\": 13000, \"subscriber\": \"%s\", \"problem\": %s, \"devices\": []}",
           is("taken") ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "free", problem);
  return 0;
}

int InitializeInjection() {
  char line[512] = "";
  lanescope_cupti_install(line, sizeof line);
  lanescope::record_cupti::start_native_recording();
  return 1;
}

#endif
