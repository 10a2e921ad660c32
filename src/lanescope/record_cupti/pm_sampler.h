// Samples the hardware counters of one GPU, for all processes that use it. Needs no CUDA context
// and no memory on the GPU.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lanescope/record_cupti/pm_library.h"

#if LANESCOPE_HAS_PM_SAMPLING
namespace lanescope::record_cupti {

// A counter that is sampled, under the first of its metric's names that the GPU knows.
struct PmSeries {
  const char* name;
  const char* unit;    // "%", or "bytes" or "cycles" of the sample
  std::string metric;  // CUPTI's
  double scale = 1;    // from the metric to the unit
};

struct PmSample {
  std::uint64_t start_ns, end_ns;  // PmSampler::clock()
  const double* values;            // one a series
};

struct PmClock {
  std::uint64_t ticks = 0, device_ns = 0;
};

// One thread. Between calls the GPU fills a buffer in host memory, which holds some thousands of
// samples.
class PmSampler {
 public:
  PmSampler(const PmLibrary& library, int device, std::uint64_t interval_ns)
      : cupti_(library), device_(device), interval_ns_(interval_ns) {}
  ~PmSampler() { close(); }
  PmSampler(const PmSampler&) = delete;
  PmSampler& operator=(const PmSampler&) = delete;

  // Chooses what one pass can count, and starts. About half a second. Empty: done; else one line
  // with a remedy.
  std::string open();
  // Passes all samples that are there, in order of time. False: samples were lost, and sampling
  // starts again.
  bool poll(const std::function<void(const PmSample&)>& take);
  // One moment on two clocks: the recorder's, and that of the samples, which CUPTI keeps close to
  // CLOCK_REALTIME. Zeros: unknown.
  PmClock clock() const;
  void stop();  // the GPU stops sampling; poll() gives the rest

  const std::vector<PmSeries>& series() const { return series_; }
  const std::string& chip() const { return chip_; }

 private:
  std::string choose_metrics();
  std::size_t passes();
  std::string enable();
  void close();
  bool clear_image();
  std::string problem(CUptiResult result) const;

  const PmLibrary& cupti_;
  int device_;
  std::uint64_t interval_ns_;
  std::string chip_;
  std::vector<std::uint8_t> availability_, config_, image_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  CUpti_PmSampling_Object* object_ = nullptr;
  bool started_ = false;
  std::vector<PmSeries> series_;
  std::vector<const char*> metrics_;
  std::vector<double> values_;
};

}  // namespace lanescope::record_cupti
#endif
