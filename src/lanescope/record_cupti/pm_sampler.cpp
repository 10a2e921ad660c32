#include "lanescope/record_cupti/pm_sampler.h"

#if LANESCOPE_HAS_PM_SAMPLING
#include <algorithm>
#include <initializer_list>

#include "lanescope/record/tick_clock.h"

namespace lanescope::record_cupti {
namespace {

// In host memory. An H100 writes 13 to 20 KB a sample (measured: 256 MiB held 12,715 samples and
// not 20,000), so this is more than half a second at 100 us.
constexpr std::size_t kHardwareBufferBytes = std::size_t{128} << 20;
// The samples of one round of decoding, 0.1 s. An H100 needs up to 30 KB a sample, and clearing the image takes
// time for each that it could hold. When it is full, the rest of what was in the GPU's buffer is
// lost (measured, CUDA 13.0).
std::uint32_t samples_per_round(std::uint64_t interval_ns) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(102'400'000 / interval_ns, 256, 2048));
}
constexpr int kMostRounds = 100;  // of one poll

struct Wanted {
  const char* name;
  const char* unit;
  std::initializer_list<const char*> metrics;
  double scale = 1;  // from the metric to the unit
};
constexpr double kSectorBytes = 32;
// In order of importance: what does not fit into one pass with those before it is left out.
const Wanted kWanted[] = {
    {"SM active",
     "%",
     {"TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
      "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"}},
    {"DRAM read", "bytes", {"dram__bytes_read.sum", "dram__bytes_op_read.sum"}},
    {"DRAM write", "bytes", {"dram__bytes_write.sum", "dram__bytes_op_write.sum"}},
    {"Tensor active",
     "%",
     {"TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}},
    {"PCIe read", "bytes", {"pcie__read_bytes.sum", "PCI.TriageCompute.pcie__read_bytes.sum"}},
    {"PCIe write", "bytes", {"pcie__write_bytes.sum", "PCI.TriageCompute.pcie__write_bytes.sum"}},
    {"NVLink receive", "bytes", {"nvlrx__bytes.sum", "NVLRX.TriageCompute.nvlrx__bytes.sum"}},
    {"NVLink send", "bytes", {"nvltx__bytes.sum", "NVLTX.TriageCompute.nvltx__bytes.sum"}},
    {"L2", "bytes", {"lts__t_sectors_srcunit_tex.sum"}, kSectorBytes},
    // The percentages above need this counter anyway, so it costs no room in the pass.
    {"SM clock counted", "cycles", {"sm__cycles_elapsed.avg"}}};

#define LANESCOPE_PARAMS(type, name) \
  type name = {};                    \
  name.structSize = type##_STRUCT_SIZE

// Why CUPTI says that it cannot sample a GPU, with what can be done.
std::string why_unsupported(const CUpti_Profiler_DeviceSupported_Params& support) {
  using Params = CUpti_Profiler_DeviceSupported_Params;
  static constexpr struct {
    CUpti_Profiler_Support_Level Params::*level;
    const char* line;
  } kReasons[] = {{&Params::architecture, "it is older than Turing"},
                  {&Params::vGpu, "it is a virtual GPU, and its host does not allow profiling"},
                  {&Params::confidentialCompute, "confidential computing is on"},
                  {&Params::wsl, "this driver does not do it under WSL"},
                  {&Params::sli, "SLI is on"},
                  {&Params::cmp, "it is made for mining"}};
  for (const auto& reason : kReasons)
    if (support.*reason.level == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ||
        support.*reason.level == CUPTI_PROFILER_CONFIGURATION_DISABLED)
      return std::string("this GPU's counters cannot be sampled: ") + reason.line +
             "; record without --hardware";
  return "this GPU's counters cannot be sampled, and CUPTI does not say why (a MIG instance?); "
         "record without --hardware";
}

}  // namespace

std::string PmSampler::problem(CUptiResult result) const {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "this user may not read the GPU's counters; run as root, or let all users: driver "
             "option NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "another profiler reads the GPU's counters already (Nsight, DCGM, another recording "
             "with --hardware); end it first";
    default:
      break;
  }
  const char* text = nullptr;
  if (cupti_.cuptiGetResultString(result, &text) != CUPTI_SUCCESS || !text) text = "CUPTI error";
  return std::string("CUPTI cannot sample this GPU's counters: ") + text + " (" +
         std::to_string(static_cast<int>(result)) + ")";
}

std::size_t PmSampler::passes() {
  if (host_) {
    LANESCOPE_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, end);
    end.pHostObject = host_;
    cupti_.cuptiProfilerHostDeinitialize(&end);
    host_ = nullptr;
  }
  LANESCOPE_PARAMS(CUpti_Profiler_Host_Initialize_Params, begin);
  begin.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
  begin.pChipName = chip_.c_str();
  begin.pCounterAvailabilityImage = availability_.data();
  if (cupti_.cuptiProfilerHostInitialize(&begin) != CUPTI_SUCCESS) return 0;
  host_ = begin.pHostObject;
  LANESCOPE_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
  add.pHostObject = host_;
  add.ppMetricNames = metrics_.data();
  add.numMetrics = metrics_.size();
  if (cupti_.cuptiProfilerHostConfigAddMetrics(&add) != CUPTI_SUCCESS) return 0;
  LANESCOPE_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
  size.pHostObject = host_;
  if (cupti_.cuptiProfilerHostGetConfigImageSize(&size) != CUPTI_SUCCESS) return 0;
  config_.assign(size.configImageSize, 0);
  LANESCOPE_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, image);
  image.pHostObject = host_;
  image.configImageSize = config_.size();
  image.pConfigImage = config_.data();
  if (cupti_.cuptiProfilerHostGetConfigImage(&image) != CUPTI_SUCCESS) return 0;
  LANESCOPE_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, count);
  count.configImageSize = config_.size();
  count.pConfigImage = config_.data();
  return cupti_.cuptiProfilerHostGetNumOfPasses(&count) == CUPTI_SUCCESS ? count.numOfPasses : 0;
}

// Adds one counter after another, as long as one pass holds all.
std::string PmSampler::choose_metrics() {
  for (const Wanted& wanted : kWanted)
    for (const char* metric : wanted.metrics) {
      metrics_.push_back(metric);
      if (passes() == 1) {
        series_.push_back({wanted.name, wanted.unit, metric, wanted.scale});
        break;
      }
      metrics_.pop_back();
    }
  if (metrics_.empty() || passes() != 1)
    return "CUPTI knows no counters of this GPU (" + chip_ + "); use a newer CUPTI";
  values_.assign(metrics_.size(), 0);
  return {};
}

std::string PmSampler::open() {
  LANESCOPE_PARAMS(CUpti_Profiler_Initialize_Params, begin);
  if (const auto result = cupti_.cuptiProfilerInitialize(&begin); result != CUPTI_SUCCESS)
    return problem(result);
  LANESCOPE_PARAMS(CUpti_Profiler_DeviceSupported_Params, support);
  support.cuDevice = device_;
  support.api = CUPTI_PROFILER_PM_SAMPLING;
  if (cupti_.cuptiProfilerDeviceSupported(&support) == CUPTI_SUCCESS &&
      support.isSupported == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
    return why_unsupported(support);
  LANESCOPE_PARAMS(CUpti_Device_GetChipName_Params, chip);
  chip.deviceIndex = static_cast<std::size_t>(device_);
  if (const auto result = cupti_.cuptiDeviceGetChipName(&chip); result != CUPTI_SUCCESS)
    return problem(result);
  chip_ = chip.pChipName;
  LANESCOPE_PARAMS(CUpti_PmSampling_GetCounterAvailability_Params, available);
  available.deviceIndex = static_cast<std::size_t>(device_);
  auto result = cupti_.cuptiPmSamplingGetCounterAvailability(&available);
  if (result == CUPTI_SUCCESS) {
    availability_.assign(available.counterAvailabilityImageSize, 0);
    available.pCounterAvailabilityImage = availability_.data();
    result = cupti_.cuptiPmSamplingGetCounterAvailability(&available);
  }
  if (result != CUPTI_SUCCESS) return problem(result);
  if (std::string line = choose_metrics(); !line.empty()) return line;
  return enable();
}

std::string PmSampler::enable() {
  LANESCOPE_PARAMS(CUpti_PmSampling_Enable_Params, on);
  on.deviceIndex = static_cast<std::size_t>(device_);
  if (const auto result = cupti_.cuptiPmSamplingEnable(&on); result != CUPTI_SUCCESS)
    return problem(result);
  object_ = on.pPmSamplingObject;
  LANESCOPE_PARAMS(CUpti_PmSampling_SetConfig_Params, config);
  config.pPmSamplingObject = object_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.hardwareBufferSize = kHardwareBufferBytes;
  config.samplingInterval = interval_ns_;
  config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  if (const auto result = cupti_.cuptiPmSamplingSetConfig(&config); result != CUPTI_SUCCESS)
    return problem(result);
  LANESCOPE_PARAMS(CUpti_PmSampling_GetCounterDataSize_Params, size);
  size.pPmSamplingObject = object_;
  size.pMetricNames = metrics_.data();
  size.numMetrics = metrics_.size();
  size.maxSamples = samples_per_round(interval_ns_);
  if (const auto result = cupti_.cuptiPmSamplingGetCounterDataSize(&size); result != CUPTI_SUCCESS)
    return problem(result);
  image_.assign(size.counterDataSize, 0);
  if (!clear_image()) return "CUPTI does not take the buffer for the GPU's counters";
  LANESCOPE_PARAMS(CUpti_PmSampling_Start_Params, start);
  start.pPmSamplingObject = object_;
  if (const auto result = cupti_.cuptiPmSamplingStart(&start); result != CUPTI_SUCCESS)
    return problem(result);
  started_ = true;
  return {};
}

bool PmSampler::clear_image() {
  LANESCOPE_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params, clear);
  clear.pPmSamplingObject = object_;
  clear.counterDataSize = image_.size();
  clear.pCounterData = image_.data();
  return cupti_.cuptiPmSamplingCounterDataImageInitialize(&clear) == CUPTI_SUCCESS;
}

bool PmSampler::poll(const std::function<void(const PmSample&)>& take) {
  if (!object_) return false;
  for (int round = 0; round < kMostRounds; ++round) {
    LANESCOPE_PARAMS(CUpti_PmSampling_DecodeData_Params, decode);
    decode.pPmSamplingObject = object_;
    decode.pCounterDataImage = image_.data();
    decode.counterDataImageSize = image_.size();
    const CUptiResult decoded = cupti_.cuptiPmSamplingDecodeData(&decode);
    const bool is_last =
        decode.decodeStopReason != CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
    LANESCOPE_PARAMS(CUpti_PmSampling_GetCounterDataInfo_Params, info);
    info.pCounterDataImage = image_.data();
    info.counterDataImageSize = image_.size();
    if (cupti_.cuptiPmSamplingGetCounterDataInfo(&info) != CUPTI_SUCCESS)
      info.numCompletedSamples = 0;
    for (std::size_t i = 0; i < info.numCompletedSamples; ++i) {
      LANESCOPE_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params, sample);
      sample.pPmSamplingObject = object_;
      sample.pCounterDataImage = image_.data();
      sample.counterDataImageSize = image_.size();
      sample.sampleIndex = i;
      LANESCOPE_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, values);
      values.pHostObject = host_;
      values.pCounterDataImage = image_.data();
      values.counterDataImageSize = image_.size();
      values.rangeIndex = i;
      values.ppMetricNames = metrics_.data();
      values.numMetrics = metrics_.size();
      values.pMetricValues = values_.data();
      if (cupti_.cuptiPmSamplingCounterDataGetSampleInfo(&sample) == CUPTI_SUCCESS &&
          cupti_.cuptiProfilerHostEvaluateToGpuValues(&values) == CUPTI_SUCCESS) {
        for (std::size_t k = 0; k < series_.size(); ++k) values_[k] *= series_[k].scale;
        take({sample.startTimestamp, sample.endTimestamp, values_.data()});
      }
    }
    if (info.numCompletedSamples != 0) clear_image();
    if (decoded != CUPTI_SUCCESS || decode.overflow) {
      // The object delivers nothing more, and cannot be started again (measured, CUDA 13.0).
      close();
      enable();
      return false;
    }
    if (is_last) return true;
  }
  return true;
}

// The narrowest of some readings.
PmClock PmSampler::clock() const {
  PmClock best;
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    std::uint64_t device_ns = 0;
    const std::uint64_t before = record::ticks();
    if (cupti_.cuptiGetTimestamp(&device_ns) != CUPTI_SUCCESS) return {};
    const std::uint64_t width = record::ticks() - before;
    if (width >= narrowest) continue;
    narrowest = width;
    best = {before + width / 2, device_ns};
  }
  return best;
}

void PmSampler::stop() {
  if (!started_) return;
  started_ = false;
  LANESCOPE_PARAMS(CUpti_PmSampling_Stop_Params, stop);
  stop.pPmSamplingObject = object_;
  cupti_.cuptiPmSamplingStop(&stop);
}

void PmSampler::close() {
  if (!object_) return;
  stop();
  LANESCOPE_PARAMS(CUpti_PmSampling_Disable_Params, off);
  off.pPmSamplingObject = object_;
  cupti_.cuptiPmSamplingDisable(&off);
  object_ = nullptr;
}

}  // namespace lanescope::record_cupti
#endif
