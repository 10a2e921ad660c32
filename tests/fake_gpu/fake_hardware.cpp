// CUPTI's PM sampling and NVML of a made-up GPU, for the fake libcupti. Its clock is 5 ms behind
// CLOCK_REALTIME; each sample is 50 % SM active, 25 % tensor active, 2 bytes read a nanosecond and
// 1 written, at 1500 MHz. One pass holds five counters. Environment variables of the process ask for trouble:
// FAKE_PM_UNSUPPORTED (1 for no reason, 2 too old, 3 a virtual GPU), FAKE_PM_REFUSE (a CUptiResult of the first call that touches the counters), FAKE_PM_OVERFLOW_AT
// (the number of the decoding call that finds the buffer full).
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#if __has_include(<cupti_pmsampling.h>)
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

namespace {

constexpr std::uint64_t kBehindNs = 5'000'000;

struct Sample {
  std::uint64_t start, end;
};
struct Image {  // at the begin of the counter data
  std::uint64_t count, room;
  Sample samples[];
};

struct State {
  std::size_t metrics = 0;
  std::uint64_t interval = 0, next = 0, decodes = 0;
  bool started = false, broken = false;
} state;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec) - kBehindNs;
}

std::uint64_t asked_for(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? std::strtoull(value, nullptr, 10) : 0;
}

// That one pass holds.
std::size_t most_metrics() {
  const std::uint64_t most = asked_for("FAKE_PM_METRICS");
  return most != 0 ? most : 5;
}

double value_of(std::string_view metric, const Sample& sample) {
  const auto length = static_cast<double>(sample.end - sample.start);
  if (metric.find("pipe_tensor") != metric.npos) return 25;
  if (metric.find("sm__cycles_active") != metric.npos) return 50;
  if (metric == "dram__bytes_read.sum") return 2 * length;
  if (metric == "dram__bytes_write.sum") return length;
  if (metric.starts_with("lts__t_sectors")) return length / 8;
  if (metric == "sm__cycles_elapsed.avg") return 1.5 * length;
  return 0;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiGetTimestamp(std::uint64_t* ns) {
  *ns = now_ns();
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params*) {
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* p) {
  for (auto* level : {&p->isSupported, &p->architecture, &p->sli, &p->vGpu, &p->confidentialCompute,
                      &p->cmp, &p->wsl})
    *level = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  const std::uint64_t trouble = asked_for("FAKE_PM_UNSUPPORTED");
  if (trouble != 0) p->isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  if (trouble == 2) p->architecture = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  if (trouble == 3) p->vGpu = CUPTI_PROFILER_CONFIGURATION_DISABLED;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
  p->pChipName = "FAKE1";
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(&state);
  state.metrics = 0;
  return p->pCounterAvailabilityImage ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult CUPTIAPI cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params*) {
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
  for (std::size_t i = 0; i < p->numMetrics; ++i)
    if (std::string_view(p->ppMetricNames[i]).find("nvl") != std::string_view::npos)
      return CUPTI_ERROR_UNKNOWN;  // what an H100 without NVLink says
  state.metrics = p->numMetrics;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  p->configImageSize = 8;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* p) {
  std::memcpy(p->pConfigImage, &state.metrics, 8);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
  p->numOfPasses = state.metrics > most_metrics() ? 2 : 1;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  const auto* image = reinterpret_cast<const Image*>(p->pCounterDataImage);
  for (std::size_t i = 0; i < p->numMetrics; ++i)
    p->pMetricValues[i] = value_of(p->ppMetricNames[i], image->samples[p->rangeIndex]);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params* p) {
  p->counterAvailabilityImageSize = 8;
  if (!p->pCounterAvailabilityImage) return CUPTI_SUCCESS;
  return static_cast<CUptiResult>(asked_for("FAKE_PM_REFUSE"));
}
CUptiResult CUPTIAPI cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* p) {
  p->pPmSamplingObject = reinterpret_cast<CUpti_PmSampling_Object*>(&state);
  state.broken = false;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params*) {
  state.started = false;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params* p) {
  std::size_t metrics = 0;
  std::memcpy(&metrics, p->pConfig, 8);
  if (metrics > most_metrics()) return CUPTI_ERROR_NOT_SUPPORTED;
  state.interval = p->samplingInterval;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiPmSamplingStart(CUpti_PmSampling_Start_Params*) {
  if (state.broken) return CUPTI_ERROR_UNKNOWN;  // as an H100 after an overflow
  state.started = true;
  state.next = 0;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params*) {
  state.started = false;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* p) {
  auto* image = reinterpret_cast<Image*>(p->pCounterDataImage);
  p->overflow = 0;
  p->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER;
  if (++state.decodes == asked_for("FAKE_PM_OVERFLOW_AT")) state.broken = true;
  if (state.broken) {
    p->overflow = 1;
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  const std::uint64_t now = now_ns();
  if (state.next == 0) {  // as the real one: the first sample begins long before the start
    state.next = now;
    image->samples[image->count++] = {now - 2'000'000'000, now};
  }
  for (; state.next + state.interval <= now; state.next += state.interval) {
    if (image->count == image->room) {
      p->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
      break;
    }
    image->samples[image->count++] = {state.next, state.next + state.interval};
  }
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params* p) {
  p->counterDataSize = sizeof(Image) + p->maxSamples * sizeof(Sample);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params* p) {
  auto* image = reinterpret_cast<Image*>(p->pCounterData);
  *image = {0, (p->counterDataSize - sizeof(Image)) / sizeof(Sample)};
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* p) {
  const auto* image = reinterpret_cast<const Image*>(p->pCounterDataImage);
  p->numTotalSamples = image->room;
  p->numPopulatedSamples = p->numCompletedSamples = image->count;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* p) {
  const auto* image = reinterpret_cast<const Image*>(p->pCounterDataImage);
  p->startTimestamp = image->samples[p->sampleIndex].start;
  p->endTimestamp = image->samples[p->sampleIndex].end;
  return CUPTI_SUCCESS;
}

}  // extern "C"
#endif

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  static int one;
  *device = &one;
  return std::strncmp(uuid, "GPU-abababab-", 13) == 0 ? 0 : 6;  // as the fake libcuda's
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1755 : 2619;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) {
  *mhz = 2000;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 312'500;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) {
  *degrees = 61;
  return 0;
}
int nvmlDeviceGetMemoryBusWidth(void*, unsigned* bits) {
  *bits = 4096;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* is_active) {
  *is_active = link < 18 ? 1 : 0;
  return link < 20 ? 0 : 2;  // two links lead nowhere, the others do not exist
}
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned value, unused;
};
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].result = values[i].field == 90 ? 0 : 3;  // the speed of its NVLinks
    values[i].value = 26'562;
  }
  return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4;  // the power limit
  return 0;
}
}
