#include "lanescope/cli/doctor_checks.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "lanescope/cli/gpu_injection.h"
#include "lanescope/cli/python_package.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/record/range.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string version_text(std::int64_t number) {  // 13000 -> "13.0"
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// CUPTI's versions count 1, 2, ... up to 28 (CUDA 12.9); since then, 130001 is CUDA 13.0.1.
std::string cupti_version_text(std::int64_t number) {
  if (number < 10000) return fmt::format("version {}", number);
  return fmt::format("version {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

// The driver exists: says what is wrong with it.
Check driver_problem(const GpuReport& report) {
  Check check{"driver", Health::kProblem, report.driver_problem};
  if (report.driver_error == kNoDevice || report.driver_problem == "no device is visible") {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr) {
      check.text = fmt::format("CUDA_VISIBLE_DEVICES={} hides every GPU", visible);
      check.remedy = "unset it to record the GPU";
      check.health = Health::kNote;
    } else if (!report.has_device_file) {
      check.text =
          "the NVIDIA driver's library is here, a GPU is not: GPU recording is off, CPU "
          "recording works";
      check.health = Health::kNote;
    } else {
      check.remedy = "run nvidia-smi; in a container give it the GPU (docker run --gpus all)";
    }
  } else {
    check.remedy =
        "run nvidia-smi: the driver's library and its kernel module must be of one "
        "version; a restart helps after an update";
  }
  return check;
}

void check_devices(const GpuReport& report, std::vector<Check>* checks) {
  int number = 0;
  for (const GpuDevice& device : report.devices) {
    Check check{"gpu"};
    check.text = fmt::format("{}: {}, {:.1f} GiB, compute capability {}.{}", number++, device.name,
                             static_cast<double>(device.memory_bytes) / kGib, device.compute_major,
                             device.compute_minor);
    if (device.is_mig) {
      check.health = Health::kNote;
      check.text +=
          "; a MIG slice: its own kernels are recorded, those of other slices of the GPU "
          "are not seen";
    }
    checks->push_back(check);
  }
}

Check check_cupti(const GpuReport& report, const std::string& library) {
  if (library.empty())
    return {"cupti", Health::kProblem,
            "this lanescope was built without CUPTI, so the GPU is not recorded", kHowToGetCupti};
  if (report.stage == "cupti" && !report.crash.empty())
    return {"cupti", Health::kProblem, fmt::format("CUPTI was asked and {}", report.crash),
            "LANESCOPE_CUPTI_LIBRARY=/path/to/libcupti.so names another one"};
  if (!report.cupti_problem.empty())
    return {"cupti", Health::kProblem, report.cupti_problem,
            "pip install nvidia-cuda-cupti of the driver's CUDA version, or name a libcupti.so in "
            "LANESCOPE_CUPTI_LIBRARY"};
  return {"cupti", Health::kOk,
          fmt::format("{} {}", report.cupti_path, cupti_version_text(report.cupti_version))};
}

// Adds nothing if the driver does not say.
void check_permission(const GpuReport& report, std::vector<Check>* checks) {
  bool refused = report.probe_problem.find("PRIVILEGE") != std::string::npos;
  for (const std::string& note : report.notes)
    refused |= note.find("PRIVILEGE") != std::string::npos;
  const std::string params = text_of_file("/proc/driver/nvidia/params");
  const bool restricted = params.find("RmProfilingAdminOnly: 1") != std::string::npos;
  const std::string remedy =
      "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > "
      "/etc/modprobe.d/nvidia-profiling.conf and restart; in a container --cap-add SYS_ADMIN";
  if (refused) {
    checks->push_back(
        {"permission", Health::kProblem, "the driver lets only administrators profile", remedy});
  } else if (restricted && geteuid() != 0) {
    checks->push_back({"permission", Health::kNote,
                       "only administrators may read hardware counters; kernels, copies and calls "
                       "need no permission"});
  } else if (!params.empty()) {
    checks->push_back({"permission", Health::kOk, "nothing is kept from this user"});
  }
}

Check check_probe(const GpuReport& report) {
  std::string notes;
  for (const std::string& note : report.notes) notes += "; " + note;
  Check check{"probe", Health::kProblem};
  if (!report.crash.empty()) {
    check.text = fmt::format("while a kernel was recorded, {}", report.crash);
  } else if (!report.probe_problem.empty()) {
    check.text = report.probe_problem + notes;
  } else if (!report.probed) {
    return {"probe", Health::kNote, "no kernel was recorded: see above"};
  } else {
    return {"probe", report.notes.empty() ? Health::kOk : Health::kNote,
            fmt::format("a kernel of {:.1f} us came back with {} API call{}{}",
                        static_cast<double>(report.kernel_ns) / 1e3, report.api_call_count,
                        report.api_call_count == 1 ? "" : "s", notes)};
  }
  check.remedy = report.subscriber.empty() || report.subscriber == "free"
                     ? "end other profilers of this GPU (nsys, ncu, dcgm) and try again"
                     : fmt::format("CUPTI answered '{}': end the other tool", report.subscriber);
  return check;
}

}  // namespace

const char* health_word(Health health) {
  return health == Health::kOk ? "ok" : health == Health::kNote ? "note" : "problem";
}

Check check_recorder() {
  const auto failed = [](const std::string& text) {
    return Check{"recorder", Health::kProblem, text,
                 "name another folder for temporary files in TMPDIR"};
  };
  record::RecorderOptions options;
  options.temporary = true;
  options.activities = LANESCOPE_ACTIVITY_CPU;
  const auto recorder = record::Recorder::open(options);
  if (!recorder) return failed(recorder.error().message);
  if (const auto started = (*recorder)->start(); !started) return failed(started.error().message);
  { LANESCOPE_RECORD_FUNCTION("lanescope doctor"); }
  (*recorder)->stop();
  format::ReadSpoolOptions reading;
  reading.session = (*recorder)->session();
  reading.live = true;
  const Result<Trace> trace = format::read_spool((*recorder)->spool_path(), reading);
  if (!trace) return failed(trace.error().message);
  for (std::uint32_t i = 0; i < trace->slices().size(); ++i) {
    if (trace->name(SliceId{i}) == "lanescope doctor")
      return {"recorder", Health::kOk, "a range was recorded and read back: CPU recording works"};
  }
  return failed("a range was recorded and is not in the recording");
}

Check check_disk() {
  const std::string folder = temporary_folder();
  Check check{"disk"};
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0 || access(folder.c_str(), W_OK | X_OK) != 0) {
    return {"disk", Health::kProblem,
            fmt::format("'{}', the folder for temporary files, cannot be written", folder),
            "name another one in TMPDIR"};
  }
  const double gib = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / kGib;
  check.text =
      fmt::format("{:.1f} GiB free in '{}', where recordings lie until they are read", gib, folder);
  if (gib < 4) {  // RecorderOptions::max_bytes
    check.health = Health::kNote;
    check.remedy =
        "a long recording takes up to 4 GiB: name a larger disk in TMPDIR, or in "
        "profile(output_dir=...)";
  }
  return check;
}

Check check_clock() {
  constexpr int kReadings = 100'000;
  const auto nanoseconds = [] {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  };
  double best_ns = 1e9;
  for (int round = 0; round < 5; ++round) {
    const double begin = nanoseconds();
    std::uint64_t sum = 0;
    for (int i = 0; i < kReadings; ++i) sum += record::ticks();
    asm volatile("" : : "r"(sum));
    best_ns = std::min(best_ns, (nanoseconds() - begin) / kReadings);
  }
  Check check{"clock"};
  check.text = fmt::format("one reading takes {:.1f} ns", best_ns);
  if constexpr (record::kTickClock == spool::ClockKind::kTsc) {
    const std::string cpu = text_of_file("/proc/cpuinfo");
    const bool invariant = cpu.find(" constant_tsc") != std::string::npos &&
                           cpu.find(" nonstop_tsc") != std::string::npos;
    const std::string source =
        text_of_file("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    if (!invariant) {
      check.health = Health::kNote;
      check.text += "; the processor does not say that its counter runs evenly on all cores";
      check.remedy =
          "expect times of different threads to differ; a virtual machine may hide the "
          "flags constant_tsc and nonstop_tsc";
    } else if (!source.empty() && source.find("tsc") == std::string::npos) {
      check.health = Health::kNote;
      check.text += "; the kernel does not trust the processor's counter";
      check.remedy = "dmesg | grep -i tsc says why";
    } else {
      check.text += ", evenly on all cores (constant_tsc, nonstop_tsc)";
    }
  }
  return check;
}

std::vector<Check> check_gpu(const GpuReport& report, const std::string& library) {
  if (!report.has_driver) {
    if (report.stage == "driver" && !report.crash.empty())
      return {{"driver", Health::kProblem, "libcuda.so.1 was loaded and " + report.crash}};
    constexpr char kNone[] = "no NVIDIA driver (libcuda.so.1 not found)";
    if (report.has_device_file)
      return {{"driver", Health::kProblem,
               fmt::format("a GPU is here, and {}: the GPU is not recorded", kNone),
               "install the driver; in a container NVIDIA_DRIVER_CAPABILITIES needs compute"}};
    const std::string off = fmt::format("{}: GPU recording is off, CPU recording works", kNone);
    std::vector<Check> checks;
    for (const char* name : {"driver", "gpu", "cupti", "probe"})
      checks.push_back({name, Health::kNote, off});
    if (library.empty()) {
      checks[2].text += "; this lanescope was built without CUPTI";
      checks[2].remedy = kHowToGetCupti;
    }
    return checks;
  }
  if (!report.driver_problem.empty()) return {driver_problem(report)};
  std::vector<Check> checks = {
      {"driver", Health::kOk, fmt::format("CUDA {}", version_text(report.driver_version))}};
  if (report.stage == "driver" && !report.crash.empty()) {
    checks[0] = {"driver", Health::kProblem, "the driver was started and " + report.crash,
                 "run nvidia-smi: it should answer at once"};
    return checks;
  }
  check_devices(report, &checks);
  checks.push_back(check_cupti(report, library));
  if (checks.back().health == Health::kProblem) return checks;
  check_permission(report, &checks);
  checks.push_back(check_probe(report));
  return checks;
}

Check check_other_tools() {
  if (const std::string path = foreign_injection(); !path.empty())
    return {"other tools", Health::kProblem,
            fmt::format("CUDA_INJECTION64_PATH names another tool, '{}', which the driver loads "
                        "instead of lanescope",
                        path),
            "unset CUDA_INJECTION64_PATH"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with("NSYS_PROFILING") || name.starts_with("NV_NSIGHT_INJECTION"))
      return {"other tools", Health::kProblem,
              fmt::format("{} is set: this runs under Nsight, and CUPTI serves one tool at a time",
                          name),
              "run it without nsys or ncu"};
  }
  const std::string maps = text_of_file("/proc/self/maps");
  for (const char* trait : {"ToolsInjection", "libcuda-injection", "nsight"}) {
    if (maps.find(trait) != std::string::npos)
      return {
          "other tools", Health::kProblem,
          fmt::format("a library of another profiler ('{}') is loaded into this process", trait),
          "leave it out of LD_PRELOAD"};
  }
  return {"other tools", Health::kOk, "no other profiler in the environment"};
}

std::vector<Check> check_python(const std::string& python) {
  constexpr char kAsk[] = R"(
def say(key, value): print(key + '=' + str(value).replace('\n', ' '))
say('version', '.'.join(map(str, sys.version_info[:3])))
try:
    import lanescope
    if lanescope.__file__ is None: raise ImportError('only a folder of that name')
except Exception as error:
    say('package_problem', error)
else:
    say('package', lanescope.__version__)
    say('cuda', len(lanescope.supported_activities()) - 1)
    from lanescope import _observer_build as build
    import os
    try:
        torch = build.find_torch()
        say('torch', torch.version)
        path = build.cached_path(torch)
        say('observer', path)
        say('built', int(os.path.exists(path)))
        say('compiler', ' '.join(build.find_compiler()))
    except Exception as error:
        say('observer_problem', error)
)";
  const Result<std::string> answer = ask_python(python, kAsk);
  if (!answer) return {{"python", Health::kProblem, answer.error().message}};
  std::map<std::string, std::string, std::less<>> said;
  std::istringstream lines(*answer);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      said[line.substr(0, equals)] = line.substr(equals + 1);
  }
  if (said.contains("package_problem"))
    return {{"python", Health::kNote,
             fmt::format("{} {} has no package lanescope ({})", python, said["version"],
                         said["package_problem"]),
             fmt::format("{} -m pip install <the folder of lanescope's source>", python)}};
  std::vector<Check> checks = {
      {"python", Health::kOk,
       fmt::format("{} {} with lanescope {}, {} CUPTI", python, said["version"], said["package"],
                   said["cuda"] == "0" ? "without" : "with")}};
  if (!said.contains("torch")) {
    checks.push_back({"torch", Health::kNote, said["observer_problem"]});
    return checks;
  }
  checks.push_back({"torch", Health::kOk, said["torch"]});
  if (said["built"] == "1") {
    checks.push_back({"observer", Health::kOk, said["observer"]});
  } else if (said.contains("compiler")) {
    checks.push_back({"observer", Health::kNote,
                      fmt::format("not built yet for this torch; the first recording builds it "
                                  "with {}",
                                  said["compiler"]),
                      fmt::format("{} -m lanescope.observer build", python)});
  } else {
    checks.push_back(
        {"observer", Health::kProblem,
         fmt::format("torch operators cannot be recorded: {}", said["observer_problem"]),
         fmt::format("after that: {} -m lanescope.observer build", python)});
  }
  return checks;
}

}  // namespace lanescope::cli
