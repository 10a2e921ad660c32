#include "lanescope/cli/gpu_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lanescope/base/json_value.h"
#include "lanescope/base/result.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/record/range.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record_cupti/cupti_source.h"

namespace lanescope::cli {
namespace {

constexpr int kTimeoutSeconds = 60;  // a driver without persistence mode starts for many seconds
constexpr char kKernelName[] = "lanescope_probe";
constexpr std::uint64_t kProbeCycles = 20'000;
// 20,000 cycles are 5 us at 4 GHz, more than any GPU has, and 200 us at 0.1 GHz; others
// may share it.
constexpr std::int64_t kShortestKernelNs = 5'000, kLongestKernelNs = 100'000'000;

// One thread that waits for `cycles` of its clock. For Turing and newer; older GPUs get
// the older target.
constexpr char kProbePtx[] = R"(
.version 6.3
.target {}
.address_size 64
.visible .entry lanescope_probe(.param .u64 cycles)
{{
  .reg .pred %again;
  .reg .u64 %wanted, %begin, %now, %passed;
  ld.param.u64 %wanted, [cycles];
  mov.u64 %begin, %clock64;
WAIT:
  mov.u64 %now, %clock64;
  sub.u64 %passed, %now, %begin;
  setp.lt.u64 %again, %passed, %wanted;
  @%again bra WAIT;
  ret;
}}
)";

// The driver's functions, as in its documentation, so that the build needs no CUDA.
struct Driver {
  int (*cuInit)(unsigned) = nullptr;
  int (*cuDriverGetVersion)(int*) = nullptr;
  int (*cuGetErrorString)(int, const char**) = nullptr;
  int (*cuDeviceGetCount)(int*) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDeviceGetName)(char*, int, int) = nullptr;
  int (*cuDeviceTotalMem)(std::size_t*, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*cuCtxSetCurrent)(void*) = nullptr;
  int (*cuModuleLoadData)(void**, const void*) = nullptr;
  int (*cuModuleGetFunction)(void**, void*, const char*) = nullptr;
  int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        void*, void**, void**) = nullptr;
  int (*cuCtxSynchronize)() = nullptr;

  std::string text_of(int error) const {
    const char* text = nullptr;
    if (cuGetErrorString && cuGetErrorString(error, &text) == 0 && text)
      return fmt::format("error {} ({})", error, text);
    return fmt::format("error {}", error);
  }
};
constexpr int kComputeMajor = 75, kComputeMinor = 76;  // CUdevice_attribute

// Writes lines key=value to the parent, each at once, so that a crash loses none.
class ReportWriter {
 public:
  explicit ReportWriter(int pipe) : pipe_(pipe) {}
  void write(std::string_view key, std::string value) {
    for (char& c : value)
      if (c == '\n' || c == '\r') c = ' ';
    const std::string line = fmt::format("{}={}\n", key, value);
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t put = ::write(pipe_, rest.data(), rest.size());
      if (put < 0 && errno != EINTR) return;
      if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  void write(std::string_view key, std::int64_t value) { write(key, std::to_string(value)); }

 private:
  int pipe_;
};

template <typename Function>
bool find(void* library, const char* name, Function* into) {
  *into = reinterpret_cast<Function>(dlsym(library, name));
  return *into != nullptr;
}

// The name of the first function that is missing, or "".
std::string load(void* library, Driver* d) {
  const char* missing = "";
  const auto need = [&](const char* name, auto* into) {
    if (!find(library, name, into)) missing = name;
  };
  need("cuInit", &d->cuInit);
  need("cuDriverGetVersion", &d->cuDriverGetVersion);
  need("cuGetErrorString", &d->cuGetErrorString);
  need("cuDeviceGetCount", &d->cuDeviceGetCount);
  need("cuDeviceGet", &d->cuDeviceGet);
  need("cuDeviceGetName", &d->cuDeviceGetName);
  need("cuDeviceTotalMem_v2", &d->cuDeviceTotalMem);
  need("cuDeviceGetAttribute", &d->cuDeviceGetAttribute);
  need("cuDevicePrimaryCtxRetain", &d->cuDevicePrimaryCtxRetain);
  need("cuCtxSetCurrent", &d->cuCtxSetCurrent);
  need("cuModuleLoadData", &d->cuModuleLoadData);
  need("cuModuleGetFunction", &d->cuModuleGetFunction);
  need("cuLaunchKernel", &d->cuLaunchKernel);
  need("cuCtxSynchronize", &d->cuCtxSynchronize);
  return missing;
}

// False: there is a problem, and it is written.
bool report_driver(Driver* driver, ReportWriter& writer) {
  writer.write("stage", "driver");
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return false;
  writer.write("has_driver", 1);
  if (const std::string missing = load(library, driver); !missing.empty()) {
    writer.write("driver_problem", "libcuda.so.1 has no " + missing);
    return false;
  }
  int version = 0, count = 0;
  if (driver->cuDriverGetVersion(&version) == 0) writer.write("driver_version", version);
  if (const int error = driver->cuInit(0); error != 0) {
    writer.write("driver_error", error);
    writer.write("driver_problem", "cuInit: " + driver->text_of(error));
    return false;
  }
  if (const int error = driver->cuDeviceGetCount(&count); error != 0 || count == 0) {
    writer.write("driver_error", error);
    writer.write("driver_problem", "no device is visible");
    return false;
  }
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0;
    char name[256] = "";
    std::size_t bytes = 0;
    driver->cuDeviceGet(&device, i);
    driver->cuDeviceGetName(name, sizeof name, device);
    driver->cuDeviceTotalMem(&bytes, device);
    driver->cuDeviceGetAttribute(&major, kComputeMajor, device);
    driver->cuDeviceGetAttribute(&minor, kComputeMinor, device);
    writer.write("device", fmt::format("{} {} {} {}", bytes, major, minor, name));
  }
  return true;
}

bool report_cupti(const std::string& path, ReportWriter& writer) {
  writer.write("stage", "cupti");
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  const auto problem = [&](std::string text) {
    writer.write("cupti_problem", std::move(text));
    return false;
  };
  if (!library) {
    const char* why = dlerror();
    return problem(why ? why : path + " cannot be loaded");
  }
  decltype(&lanescope_cupti_abi) abi = nullptr;
  decltype(&lanescope_cupti_install) install = nullptr;
  decltype(&lanescope_cupti_describe) describe = nullptr;
  if (!find(library, "lanescope_cupti_abi", &abi) ||
      !find(library, "lanescope_cupti_install", &install) ||
      !find(library, "lanescope_cupti_describe", &describe) || abi() != lanescope_record_abi())
    return problem(path + " belongs to another version of lanescope");
  std::string json(std::size_t{1} << 16U, '\0');
  if (describe(json.data(), json.size()) == 0) {
    json.resize(strnlen(json.data(), json.size()));
    writer.write("cupti", json);
  }
  char line[512] = "";
  if (install(line, sizeof line) != 0) return problem(line);
  return true;
}

// Runs the kernel on the first device. Returns what failed, or "".
std::string run_kernel(const Driver& driver) {
  const auto failed = [&](const char* what, int error) {
    return fmt::format("{}: {}", what, driver.text_of(error));
  };
  int device = 0, major = 0;
  void *context = nullptr, *module = nullptr, *function = nullptr;
  driver.cuDeviceGet(&device, 0);
  driver.cuDeviceGetAttribute(&major, kComputeMajor, device);
  if (const int e = driver.cuDevicePrimaryCtxRetain(&context, device))
    return failed("cuDevicePrimaryCtxRetain", e);
  if (const int e = driver.cuCtxSetCurrent(context)) return failed("cuCtxSetCurrent", e);
  int minor = 0;
  driver.cuDeviceGetAttribute(&minor, kComputeMinor, device);
  const bool is_old = major * 10 + minor < 75;
  const std::string ptx = fmt::format(kProbePtx, is_old ? "sm_50" : "sm_75");
  if (const int e = driver.cuModuleLoadData(&module, ptx.c_str()))
    return failed("cuModuleLoadData", e);
  if (const int e = driver.cuModuleGetFunction(&function, module, kKernelName))
    return failed("cuModuleGetFunction", e);
  std::uint64_t cycles = kProbeCycles;
  void* arguments[] = {&cycles};
  if (const int e =
          driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr))
    return failed("cuLaunchKernel", e);
  if (const int e = driver.cuCtxSynchronize()) return failed("cuCtxSynchronize", e);
  return "";
}

void report_recording(const Trace& trace, ReportWriter& writer) {
  std::int64_t kernels = 0, calls = 0, kernel_ns = -1;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    const CategoryKind kind = trace.kind(slice);
    if (kind == CategoryKind::kDriver || kind == CategoryKind::kRuntime) ++calls;
    if (kind != CategoryKind::kKernel) continue;
    ++kernels;
    if (trace.name(slice).find(kKernelName) != std::string_view::npos)
      kernel_ns = trace.dur_ns(slice);
  }
  writer.write("kernel_count", kernels);
  writer.write("api_call_count", calls);
  writer.write("kernel_ns", kernel_ns);
  if (kernel_ns < 0) {
    writer.write("probe_problem", fmt::format("the kernel ran and the recording holds {} kernels, "
                                              "none of them the probe's",
                                              kernels));
  } else if (kernel_ns < kShortestKernelNs || kernel_ns > kLongestKernelNs) {
    writer.write("probe_problem",
                 fmt::format("the kernel waits {} cycles and was recorded with {} ns, which no GPU "
                             "does",
                             kProbeCycles, kernel_ns));
  } else if (calls == 0) {
    writer.write("probe_problem", "the kernel came back, the call that launched it did not");
  }
}

void report_probe(const Driver& driver, const std::string& folder, ReportWriter& writer) {
  writer.write("stage", "probe");
  record::RecorderOptions options;
  options.directory = folder;
  options.temporary = true;
  options.activities = LANESCOPE_ACTIVITY_CPU | LANESCOPE_ACTIVITY_CUDA;
  auto opened = record::Recorder::open(options);
  if (!opened) return writer.write("probe_problem", opened.error().message);
  const std::unique_ptr<record::Recorder> recorder = std::move(opened).value();
  recorder->prepare();
  if (const auto started = recorder->start(); !started)
    return writer.write("probe_problem", started.error().message);
  std::string problem;
  {
    LANESCOPE_RECORD_FUNCTION("lanescope doctor");
    problem = run_kernel(driver);
  }
  recorder->stop();
  for (const std::string& note : recorder->notes()) writer.write("note", note);
  if (!problem.empty()) return writer.write("probe_problem", problem);
  writer.write("probed", 1);
  format::ReadSpoolOptions reading;
  reading.live = true;
  const Result<Trace> trace = format::read_spool(recorder->spool_path(), reading);
  if (!trace) return writer.write("probe_problem", trace.error().message);
  report_recording(*trace, writer);
}

void probe_gpu(const std::string& library, const std::string& folder, ReportWriter& writer) {
  // Else the driver would load another tool, or our library a second time.
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) unsetenv(name);
  Driver driver;
  if (!report_driver(&driver, writer) || library.empty()) return;
  if (report_cupti(library, writer)) report_probe(driver, folder, writer);
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

GpuDevice parse_device(std::string_view text) {
  GpuDevice device;
  const auto next = [&] {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    return number(word);
  };
  device.memory_bytes = static_cast<std::uint64_t>(next());
  device.compute_major = static_cast<int>(next());
  device.compute_minor = static_cast<int>(next());
  device.name = text;
  device.is_mig = text.find(" MIG ") != std::string_view::npos;  // "NVIDIA H100 MIG 1g.10gb"
  return device;
}

void take_cupti(std::string_view json, GpuReport* report) {
  const std::optional<JsonValue> value = parse_json(json);
  if (!value || !value->is_object()) return;
  const auto text = [&](std::string_view name, std::string* into) {
    if (const JsonValue* found = value->find(name); found && found->is_string())
      *into = found->text;
  };
  text("cupti_library", &report->cupti_path);
  text("subscriber", &report->subscriber);
  text("problem", &report->cupti_problem);
  if (const JsonValue* found = value->find("cupti_version"); found && found->integer)
    report->cupti_version = *found->integer;
}

void take_line(std::string_view line, GpuReport* report) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
  if (key == "stage") report->stage = value;
  if (key == "has_driver") report->has_driver = true;
  if (key == "driver_version") report->driver_version = static_cast<int>(number(value));
  if (key == "driver_problem") report->driver_problem = value;
  if (key == "driver_error") report->driver_error = static_cast<int>(number(value));
  if (key == "device") report->devices.push_back(parse_device(value));
  if (key == "cupti") take_cupti(value, report);
  if (key == "cupti_problem") report->cupti_problem = value;
  if (key == "probed") report->probed = true;
  if (key == "probe_problem") report->probe_problem = value;
  if (key == "note") report->notes.emplace_back(value);
  if (key == "kernel_count") report->kernel_count = number(value);
  if (key == "api_call_count") report->api_call_count = number(value);
  if (key == "kernel_ns") report->kernel_ns = number(value);
}

// Reads until the writer is gone. False: it was not gone in time.
bool read_all(int pipe, std::string* text) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text->append(buffer, static_cast<std::size_t>(got));
  }
}

// Forks; what the child writes goes into the report.
void probe_in_child(const std::string& library, const std::string& folder, GpuReport* report) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    report->crash = fmt::format("no pipe: {}", std::strerror(errno));
    return;
  }
  const pid_t child = fork();
  if (child == 0) {
    ::close(ends[0]);
    ReportWriter writer(ends[1]);
    try {
      probe_gpu(library, folder, writer);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  ::close(ends[1]);
  std::string text;
  const bool ended = child > 0 && read_all(ends[0], &text);
  ::close(ends[0]);
  if (child < 0) {
    report->crash = fmt::format("no process: {}", std::strerror(errno));
    return;
  }
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    take_line(line, report);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  if (!ended)
    report->crash = fmt::format("it did not end within {} seconds", kTimeoutSeconds);
  else if (WIFSIGNALED(status))
    report->crash =
        fmt::format("it ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    report->crash = "it ran out of memory";
}

}  // namespace

GpuReport look_at_gpu(const std::string& library) {
  GpuReport report;
  report.has_device_file = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
  // Removing the folder also removes what a crashed child left.
  std::error_code failed;
  std::string folder =
      (std::filesystem::temp_directory_path(failed) / "lanescope_doctor_XXXXXX").string();
  if (failed || mkdtemp(folder.data()) == nullptr) {
    report.crash = "the folder for temporary files cannot be written";
    return report;
  }
  probe_in_child(library, folder, &report);
  std::filesystem::remove_all(folder, failed);
  return report;
}

}  // namespace lanescope::cli
