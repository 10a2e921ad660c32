#include "lanescope/record_cupti/hardware_sampler.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lanescope/codec/counter_file.h"
#include "lanescope/record/tick_clock.h"
#include "lanescope/record_cupti/counter_outputs.h"
#include "lanescope/record_cupti/gpu_devices.h"
#include "lanescope/record_cupti/nvml_series.h"
#include "lanescope/record_cupti/other_cores.h"
#include "lanescope/record_cupti/pm_sampler.h"

namespace lanescope::record_cupti {
namespace {

using counters::Anchor;
using counters::BlockHead;
using counters::BlockKind;
using counters::SampleHead;

// Each round clears the whole image, some 3 ms on an H100, so rounds are rare. A round at 100 us
// has 400 samples: the image holds all that come while these are read, at 27 us each.
constexpr int poll_ms(std::uint64_t interval_ns) { return interval_ns >= 100'000 ? 40 : 20; }

// A thread of the program that can run is never made to wait because the sampler wakes up.
void give_way() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);  // threads that start later inherit it
}

void append(std::string* payload, const void* bytes, std::size_t size) {
  payload->append(static_cast<const char*>(bytes), size);
}

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
    float values[NvmlSeries::kCount];
    slow_.read(values);
    const std::uint64_t now = record::ticks();
    std::string payload;
    append(&payload, &now, sizeof now);
    append(&payload, values, sizeof values);
    writer_.write(head(BlockKind::kSlowSamples, NvmlSeries::kCount), payload);
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
              ", \"slow_series\": " + NvmlSeries::series_json();
    json += slow_.peaks_json();
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
    if (!whole) {
      ++losses_.overflows;
      is_first_ = true;
    }
    if (std::memcmp(&losses_, &written_losses_, sizeof losses_) == 0) return;
    written_losses_ = losses_;
    writer_.write(head(BlockKind::kLosses), {reinterpret_cast<char*>(&losses_), sizeof losses_});
  }

  std::unique_ptr<PmSampler> pm_;
  counters::Losses written_losses_;
#endif
  int number_;
  std::uint64_t interval_ns_, slow_interval_ns_;
  CounterWriter& writer_;
  NvmlSeries slow_;
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

// Until standard input ends or says something, or the parent is gone (0: it may be).
void sample(std::vector<std::unique_ptr<DeviceSampler>>& devices,
            const LanescopeHardwareOptions& options, pid_t parent) {
  for (auto& device : devices) device->begin();
  const int wait_ms = static_cast<int>(options.slow_interval_ns / 1'000'000);
  OtherCores cores(parent);
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (parent == 0 || getppid() == parent) {
    cores.move();
    for (auto& device : devices) device->read_slow();
    const int ready = ::poll(&input, 1, wait_ms);
    if (ready > 0 || (ready < 0 && errno != EINTR)) break;
  }
  for (auto& device : devices) device->end();
}

int run_sampler(const LanescopeHardwareOptions& options) {
  give_way();
  const pid_t parent = getppid();
  std::string problem;
  const CudaDriver* driver = find_driver(&problem);
  if (!driver) return print_state("none: " + problem);
  int count = 0;
  if (driver->cuInit(0) != CUDA_SUCCESS || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS ||
      count == 0)
    return print_state("none: CUDA finds no GPU; `lanescope doctor` says why");
  CounterOutputs outputs(options.path, options.most_bytes);
  std::vector<std::unique_ptr<DeviceSampler>> devices;
  std::string missing;
  for (const int number : device_numbers(options.devices, count)) {
    CounterWriter* writer = outputs.of(number);
    if (!writer)
      return print_state(std::string("none: ") + options.path + ": " + std::strerror(errno));
    auto device = std::make_unique<DeviceSampler>(number, options, *driver, writer);
    if (const std::string line = device->open();
        !line.empty() && missing.find(line) == missing.npos)
      missing += (missing.empty() ? "" : "; ") + ("GPU " + std::to_string(number) + ": " + line);
    if (device->is_useful()) devices.push_back(std::move(device));
  }
  if (devices.empty()) {
    outputs.remove_files();
    return print_state("none: " + missing);
  }
  print_state(missing.empty() ? "ready" : "ready, without counters: " + missing);
  sample(devices, options, outputs.is_shared() ? 0 : parent);
  devices.clear();
  if (outputs.is_shared()) outputs.remove_folder();
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
