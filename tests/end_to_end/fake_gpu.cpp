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

#include "lanescope/record/tick_clock.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// What the driver ran, in ticks: at most 16 launches, then one wait for all of them.
struct FakeWork {
  std::atomic<int> launches;
  std::uint64_t launch_begin[16], launch_end[16], wait_begin, wait_end;
};

namespace {
bool is(std::string_view what) {
  const char* value = getenv("FAKE_GPU");
  return value && what == value;
}
}  // namespace

#if defined(FAKE_DRIVER)

extern "C" {
__attribute__((visibility("default"))) FakeWork fake_work;
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
  return *context = &fake_work, is("no_context") ? 2 : 0;
}
EXPORT int cuCtxSetCurrent(void*) { return 0; }
EXPORT int cuModuleLoadData(void** module, const void* text) {
  const bool has_target = strstr(static_cast<const char*>(text), ".target sm_75") != nullptr;
  return *module = &fake_work, has_target ? 0 : 218;
}
EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  return *function = &fake_work, strcmp(name, "lanescope_probe") == 0 ? 0 : 500;
}
EXPORT int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**) {
  const int number = fake_work.launches;
  if (number == 16) return 2;
  fake_work.launch_begin[number] = lanescope::record::ticks();
  usleep(10);
  fake_work.launch_end[number] = lanescope::record::ticks();
  return ++fake_work.launches, 0;
}
EXPORT int cuCtxSynchronize() {
  fake_work.wait_begin = lanescope::record::ticks();
  usleep(2000);
  fake_work.wait_end = lanescope::record::ticks();
  return 0;
}

#else

#include "lanescope/codec/activity_layout.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/record_cupti/cupti_source.h"
#include "lanescope/record_cupti/native_recording.h"

namespace {
namespace spool = lanescope::spool;

int launches_before = 0;

// Of the driver that this process has loaded, however; null when none.
const FakeWork* fake_work() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? static_cast<const FakeWork*>(dlsym(driver, "fake_work")) : nullptr;
}

int prepare(void*, std::uint32_t, char* line, std::size_t size) {
  if (!is("no_permission")) return 0;
  snprintf(line, size, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  return 1;
}

int start(void*, std::uint32_t, char*, std::size_t) {
  const FakeWork* work = fake_work();
  launches_before = work ? work->launches.load() : 0;
  return 0;
}

// Kernels run one after another while the host waits, each a tenth of that time.
void report_kernel(const FakeWork& work, int number) {
  const auto correlation = static_cast<std::uint32_t>(number) + 1;
  spool::ApiCallRecord call = {};
  call.begin_tsc = work.launch_begin[number];
  call.end_tsc = work.launch_end[number];
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
  const std::uint64_t tenth = (work.wait_end - work.wait_begin) / 10;
  both.kernel.begin_tsc = work.wait_begin + static_cast<std::uint64_t>(number) % 9 * tenth;
  both.kernel.end_tsc = both.kernel.begin_tsc + (is("short") ? 0 : tenth);
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
  const FakeWork* work = fake_work();
  if (!work || is("nothing_comes_back")) return;
  for (int number = launches_before; number < work->launches; ++number)
    report_kernel(*work, number);
}

const LanescopeActivitySource source = {LANESCOPE_RECORD_ABI,
                                        LANESCOPE_ACTIVITY_CUDA,
                                        "cupti",
                                        nullptr,
                                        prepare,
                                        start,
                                        stop,
                                        nullptr,
                                        nullptr};
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
