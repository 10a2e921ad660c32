#include "lanescope/record_cupti/hardware_sampler.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lanescope/codec/counter_file.h"
#include "lanescope/record/tick_clock.h"
#include "lanescope/record_cupti/gpu_devices.h"
#include "lanescope/record_cupti/pm_sampler.h"

namespace lanescope::record_cupti {
namespace {

using counters::Anchor;
using counters::BlockHead;
using counters::BlockKind;
using counters::SampleHead;

// So that a round holds all that came meanwhile: an H100's samples take 33 us each to read.
constexpr int poll_ms(std::uint64_t interval_ns) { return interval_ns >= 100'000 ? 20 : 5; }

// Whole blocks only. Any thread.
class CounterWriter {
 public:
  CounterWriter(int file, std::uint64_t most_bytes) : file_(file), most_bytes_(most_bytes) {
    counters::FileHead head;
    std::memcpy(head.magic, counters::kMagic, sizeof head.magic);
    head.pid = static_cast<std::uint64_t>(getppid());
    bytes_ = sizeof head;
    full_ = !put(&head, sizeof head);
  }
  // False: there is no room for it.
  bool write(BlockHead head, std::string_view payload) {
    head.bytes = static_cast<std::uint32_t>(payload.size());
    std::string block(reinterpret_cast<const char*>(&head), sizeof head);
    block += payload;
    const std::lock_guard lock(mutex_);
    // The last blocks, which say what is missing, always find room.
    if (head.kind != BlockKind::kLosses && bytes_ + block.size() > most_bytes_) full_ = true;
    if (full_ && head.kind != BlockKind::kLosses) return false;
    if (!put(block.data(), block.size())) full_ = true;
    bytes_ += block.size();
    return true;
  }
  bool is_full() const { return full_; }

 private:
  bool put(const void* bytes, std::size_t size) {
    const ssize_t written = ::write(file_, bytes, size);
    return written == static_cast<ssize_t>(size);  // else the disk is full; readers skip the rest
  }

  int file_;
  std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::atomic<bool> full_{false};
};

void append(std::string* payload, const void* bytes, std::size_t size) {
  payload->append(static_cast<const char*>(bytes), size);
}

// Clocks, power and temperature of one GPU.
class SlowSeries {
 public:
  SlowSeries(const NvmlLibrary* nvml, const CudaDriver& driver, CUdevice device) {
    CUuuid uuid{};
    if (!nvml || !driver.cuDeviceGetUuid || driver.cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
      return;
    const std::string name = gpu_uuid_text(uuid);
    if (nvml->nvmlDeviceGetHandleByUUID(name.c_str(), &device_) == 0) nvml_ = nvml;
  }
  bool is_there() const { return nvml_ != nullptr; }

  static constexpr std::uint32_t kCount = 6;
  // Values that NVML does not give are 0, and their series is left out of the description.
  void read(float (&values)[kCount]) const {
    unsigned sm = 0, memory = 0, milliwatts = 0, degrees = 0;
    unsigned long long reasons = 0;
    nvml_->nvmlDeviceGetClockInfo(device_, 1, &sm);
    nvml_->nvmlDeviceGetClockInfo(device_, 2, &memory);
    nvml_->nvmlDeviceGetPowerUsage(device_, &milliwatts);
    nvml_->nvmlDeviceGetTemperature(device_, 0, &degrees);
    if (nvml_->nvmlDeviceGetClockReasons) nvml_->nvmlDeviceGetClockReasons(device_, &reasons);
    values[0] = static_cast<float>(sm);
    values[1] = static_cast<float>(memory);
    values[2] = static_cast<float>(milliwatts) / 1000;
    values[3] = static_cast<float>(degrees);
    values[4] = (reasons & kReasonPower) != 0 ? 1 : 0;
    values[5] = (reasons & kReasonHeat) != 0 ? 1 : 0;
  }
  static std::string series_json() {
    return R"([{"name": "SM clock", "unit": "MHz"}, {"name": "memory clock", "unit": "MHz"}, )"
           R"({"name": "power", "unit": "W"}, {"name": "temperature", "unit": "C"}, )"
           R"({"name": "slowed by power limit", "unit": "0/1"}, )"
           R"({"name": "slowed by heat", "unit": "0/1"}])";
  }
  // Bytes per second: two transfers a clock. 0: unknown.
  std::uint64_t dram_peak() const {
    unsigned clock = 0, bits = 0;
    if (!nvml_ || !nvml_->nvmlDeviceGetMaxClockInfo || !nvml_->nvmlDeviceGetMemoryBusWidth ||
        nvml_->nvmlDeviceGetMaxClockInfo(device_, 2, &clock) != 0 ||
        nvml_->nvmlDeviceGetMemoryBusWidth(device_, &bits) != 0)
      return 0;
    return std::uint64_t{clock} * 1'000'000 * 2 * (bits / 8);
  }
  double power_limit_watts() const {
    unsigned milliwatts = 0;
    if (!nvml_ || !nvml_->nvmlDeviceGetEnforcedPowerLimit ||
        nvml_->nvmlDeviceGetEnforcedPowerLimit(device_, &milliwatts) != 0)
      return 0;
    return milliwatts / 1000.0;
  }

 private:
  const NvmlLibrary* nvml_ = nullptr;
  NvmlLibrary::Device device_ = nullptr;
};

// One GPU: its counters are read by a thread, because decoding them takes up to a whole core.
class DeviceSampler {
 public:
  DeviceSampler(int number, const LanescopeHardwareOptions& options, const CudaDriver& driver,
                CounterWriter* writer)
      : number_(number),
        interval_ns_(options.interval_ns),
        slow_interval_ns_(options.slow_interval_ns),
        writer_(*writer),
        slow_(find_nvml(), driver, number) {
    char name[256] = "";
    if (driver.cuDeviceGetName(name, sizeof name - 1, number) == CUDA_SUCCESS) name_ = name;
  }
  ~DeviceSampler() { end(); }
  DeviceSampler(const DeviceSampler&) = delete;
  DeviceSampler& operator=(const DeviceSampler&) = delete;

  // What is missing, or "".
  std::string open() {
    std::string problem =
        "this lanescope was built with CUPTI's headers of CUDA 12.5 or older, "
        "which sample no counters; build it with newer ones";
#if LANESCOPE_HAS_PM_SAMPLING
    if (const PmLibrary* library = find_pm_library(&problem)) {
      pm_ = std::make_unique<PmSampler>(*library, number_, interval_ns_);
      problem = pm_->open();
      if (!problem.empty()) pm_.reset();
    }
#endif
    describe(problem);
    return problem;
  }
  bool has_counters() const { return has_counters_; }
  bool is_useful() const { return has_counters_ || slow_.is_there(); }

  void begin() {
#if LANESCOPE_HAS_PM_SAMPLING
    if (pm_) thread_ = std::thread([this] { run(); });
#endif
  }
  // Ends sampling, and writes the rest and what was lost.
  void end() {
    if (ended_) return;
    ended_ = true;
    ending_ = true;
    if (thread_.joinable()) thread_.join();
    losses_.size_limit_reached = writer_.is_full() ? 1 : 0;
    writer_.write(head(BlockKind::kLosses), {reinterpret_cast<char*>(&losses_), sizeof losses_});
  }
  void read_slow() {
    if (!slow_.is_there()) return;
    float values[SlowSeries::kCount];
    slow_.read(values);
    const std::uint64_t now = record::ticks();
    std::string payload;
    append(&payload, &now, sizeof now);
    append(&payload, values, sizeof values);
    writer_.write(head(BlockKind::kSlowSamples, SlowSeries::kCount), payload);
  }

 private:
  BlockHead head(BlockKind kind, std::uint32_t values = 0) const {
    return {.kind = kind, .device = static_cast<std::uint16_t>(number_), .values = values};
  }

  void describe(const std::string& problem) {
    std::string json = "{\"device\": " + std::to_string(number_) +
                       ", \"name\": " + json_text(name_) +
                       ", \"interval_ns\": " + std::to_string(interval_ns_);
    std::string series;
#if LANESCOPE_HAS_PM_SAMPLING
    if (pm_) {
      has_counters_ = true;
      json += ", \"chip\": " + json_text(pm_->chip());
      for (const PmSeries& one : pm_->series())
        series += (series.empty() ? "" : ", ") +
                  ("{\"name\": " + json_text(one.name) + ", \"unit\": " + json_text(one.unit) +
                   ", \"metric\": " + json_text(one.metric) + "}");
    }
#endif
    json += ", \"series\": [" + series + "]";
    if (slow_.is_there())
      json += ", \"slow_interval_ns\": " + std::to_string(slow_interval_ns_) +
              ", \"slow_series\": " + SlowSeries::series_json();
    if (const std::uint64_t peak = slow_.dram_peak(); peak != 0)
      json += ", \"dram_peak_bytes_per_second\": " + std::to_string(peak);
    if (const double watts = slow_.power_limit_watts(); watts > 0)
      json += ", \"power_limit_watts\": " + std::to_string(watts);
    if (!problem.empty()) json += ", \"problem\": " + json_text(problem);
    writer_.write(head(BlockKind::kDescription), json + "}");
  }

#if LANESCOPE_HAS_PM_SAMPLING
  void run() {
    while (!ending_) {
      read_counters();
      std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms(interval_ns_)));
    }
    pm_->stop();
    read_counters();
  }

  void read_counters() {
    const auto width = static_cast<std::uint32_t>(pm_->series().size());
    std::string payload;
    const bool whole = pm_->poll([&](const PmSample& sample) {
      const std::uint64_t length = sample.end_ns - sample.start_ns;
      // The first one after a start begins long before it.
      if (is_first_) {
        is_first_ = false;
        if (length > 2 * interval_ns_) return;
      }
      if (sample.start_ns < last_end_ns_ || sample.end_ns <= sample.start_ns ||
          length > 0xffffffffu) {
        ++losses_.refused;
        return;
      }
      if (last_end_ns_ != 0 && sample.start_ns - last_end_ns_ > interval_ns_ / 2) {
        ++losses_.gaps;
        losses_.gap_ns += sample.start_ns - last_end_ns_;
      }
      last_end_ns_ = sample.end_ns;
      const SampleHead sample_head{sample.start_ns, static_cast<std::uint32_t>(length)};
      append(&payload, &sample_head, sizeof sample_head);
      for (std::uint32_t i = 0; i < width; ++i) {
        const auto value = static_cast<float>(sample.values[i]);
        append(&payload, &value, sizeof value);
      }
    });
    if (!payload.empty()) writer_.write(head(BlockKind::kSamples, width), payload);
    if (const PmClock clock = pm_->clock(); clock.ticks != 0) {
      const Anchor anchor{clock.ticks, clock.device_ns};
      writer_.write(head(BlockKind::kAnchors),
                    {reinterpret_cast<const char*>(&anchor), sizeof anchor});
    }
    if (whole) return;
    ++losses_.overflows;
    is_first_ = true;
    writer_.write(head(BlockKind::kLosses), {reinterpret_cast<char*>(&losses_), sizeof losses_});
  }

  std::unique_ptr<PmSampler> pm_;
#endif
  int number_;
  std::uint64_t interval_ns_, slow_interval_ns_;
  CounterWriter& writer_;
  SlowSeries slow_;
  std::string name_;
  bool has_counters_ = false, is_first_ = true, ended_ = false;
  std::atomic<bool> ending_{false};
  std::uint64_t last_end_ns_ = 0;
  counters::Losses losses_;
  std::thread thread_;  // last: it uses all the others
};

// Numbers joined by commas; all `count` devices if the text is empty. Skips what is no device.
std::vector<int> device_numbers(std::string_view text, int count) {
  std::vector<int> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    int number = -1;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (number >= 0 && number < count) numbers.push_back(number);
  }
  if (numbers.empty())
    for (int number = 0; number < count; ++number) numbers.push_back(number);
  return numbers;
}

int print_state(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  return line.starts_with("none") ? 1 : 0;
}

// Until standard input ends or says something, or the parent is gone.
void sample(std::vector<std::unique_ptr<DeviceSampler>>& devices,
            const LanescopeHardwareOptions& options, pid_t parent) {
  for (auto& device : devices) device->begin();
  const int wait_ms = static_cast<int>(options.slow_interval_ns / 1'000'000);
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (getppid() == parent) {
    for (auto& device : devices) device->read_slow();
    const int ready = ::poll(&input, 1, wait_ms);
    if (ready > 0 || (ready < 0 && errno != EINTR)) break;
  }
  for (auto& device : devices) device->end();
}

int run_sampler(const LanescopeHardwareOptions& options) {
  const pid_t parent = getppid();
  std::string problem;
  const CudaDriver* driver = find_driver(&problem);
  if (!driver) return print_state("none: " + problem);
  int count = 0;
  if (driver->cuInit(0) != CUDA_SUCCESS || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS ||
      count == 0)
    return print_state("none: CUDA finds no GPU; `lanescope doctor` says why");
  const int file = open(options.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    return print_state(std::string("none: ") + options.path + ": " + std::strerror(errno));
  CounterWriter writer(file, options.most_bytes);
  std::vector<std::unique_ptr<DeviceSampler>> devices;
  std::string missing;
  for (const int number : device_numbers(options.devices, count)) {
    auto device = std::make_unique<DeviceSampler>(number, options, *driver, &writer);
    if (const std::string line = device->open();
        !line.empty() && missing.find(line) == missing.npos)
      missing += (missing.empty() ? "" : "; ") + ("GPU " + std::to_string(number) + ": " + line);
    if (device->is_useful()) devices.push_back(std::move(device));
  }
  if (devices.empty()) {
    ::close(file);
    ::unlink(options.path);
    return print_state("none: " + missing);
  }
  print_state(missing.empty() ? "ready" : "ready, without counters: " + missing);
  sample(devices, options, parent);
  devices.clear();
  ::close(file);
  return 0;
}

}  // namespace
}  // namespace lanescope::record_cupti

extern "C" int lanescope_hardware_main(const LanescopeHardwareOptions* options) {
  try {
    return lanescope::record_cupti::run_sampler(*options);
  } catch (...) {
    std::printf("none: out of memory\n");
    return 1;
  }
}
