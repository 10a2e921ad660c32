// Samples hardware counters in windows of a few milliseconds, as hardware_windows.py asks for. It makes the
// calls that the process of `record --hardware` makes: the counters of one pass, decoding, evaluation, clearing.
//   g++ -std=c++20 -O2 pm_windows.cpp -I.../include -o pm_windows -L.../lib -l:libcupti.so.13 -ldl
// Arguments: a file of 4096 bytes, nanoseconds between samples, samples that the image holds, the metrics with
// commas between. Bytes of the file: 0 what is wanted (0 nothing, 1 sampling, 9 end), 1 what is (200: cannot
// sample), 2 the loop's "read now", 3 the answer "read". Prints what a sample cost.
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

#define PARAMS(type, name) \
  type name = {};          \
  name.structSize = type##_STRUCT_SIZE

std::vector<std::uint8_t> availability, config, image;
std::vector<std::string> names;
std::vector<const char*> metrics;
std::vector<double> values;
CUpti_Profiler_Host_Object* host = nullptr;
CUpti_PmSampling_Object* object = nullptr;
std::uint64_t samples = 0, rounds = 0, failures = 0, cpu_ns = 0;

std::uint64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void check(int result, const char* what) {
  if (result == 0) return;
  std::printf("pm_windows: %s: %d\n", what, result);
  std::exit(1);
}

void clear() {
  PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params, clear);
  clear.pPmSamplingObject = object;
  clear.counterDataSize = image.size();
  clear.pCounterData = image.data();
  check(cuptiPmSamplingCounterDataImageInitialize(&clear), "clear");
}

void open(std::uint64_t interval_ns, std::uint32_t most_samples) {
  if (void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
    check(reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(0), "cuInit");
  PARAMS(CUpti_Profiler_Initialize_Params, begin);
  check(cuptiProfilerInitialize(&begin), "initialize");
  PARAMS(CUpti_Device_GetChipName_Params, chip);
  check(cuptiDeviceGetChipName(&chip), "chip");
  PARAMS(CUpti_PmSampling_GetCounterAvailability_Params, available);
  check(cuptiPmSamplingGetCounterAvailability(&available), "availability");
  availability.resize(available.counterAvailabilityImageSize);
  available.pCounterAvailabilityImage = availability.data();
  check(cuptiPmSamplingGetCounterAvailability(&available), "availability");
  PARAMS(CUpti_Profiler_Host_Initialize_Params, host_begin);
  host_begin.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
  host_begin.pChipName = chip.pChipName;
  host_begin.pCounterAvailabilityImage = availability.data();
  check(cuptiProfilerHostInitialize(&host_begin), "host");
  host = host_begin.pHostObject;
  PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
  add.pHostObject = host;
  add.ppMetricNames = metrics.data();
  add.numMetrics = metrics.size();
  check(cuptiProfilerHostConfigAddMetrics(&add), "metrics");
  PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, config_size);
  config_size.pHostObject = host;
  check(cuptiProfilerHostGetConfigImageSize(&config_size), "config size");
  config.resize(config_size.configImageSize);
  PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, config_image);
  config_image.pHostObject = host;
  config_image.configImageSize = config.size();
  config_image.pConfigImage = config.data();
  check(cuptiProfilerHostGetConfigImage(&config_image), "config");
  PARAMS(CUpti_PmSampling_Enable_Params, on);
  check(cuptiPmSamplingEnable(&on), "enable");
  object = on.pPmSamplingObject;
  PARAMS(CUpti_PmSampling_SetConfig_Params, set);
  set.pPmSamplingObject = object;
  set.configSize = config.size();
  set.pConfig = config.data();
  set.hardwareBufferSize = std::size_t{128} << 20;
  set.samplingInterval = interval_ns;
  set.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  set.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  check(cuptiPmSamplingSetConfig(&set), "set config (two passes?)");
  PARAMS(CUpti_PmSampling_GetCounterDataSize_Params, size);
  size.pPmSamplingObject = object;
  size.pMetricNames = metrics.data();
  size.numMetrics = metrics.size();
  size.maxSamples = most_samples;
  check(cuptiPmSamplingGetCounterDataSize(&size), "image size");
  image.resize(size.counterDataSize);
  clear();
}

void start() {
  PARAMS(CUpti_PmSampling_Start_Params, start);
  start.pPmSamplingObject = object;
  failures += cuptiPmSamplingStart(&start) != CUPTI_SUCCESS;
}
void stop() {
  PARAMS(CUpti_PmSampling_Stop_Params, stop);
  stop.pPmSamplingObject = object;
  failures += cuptiPmSamplingStop(&stop) != CUPTI_SUCCESS;
}

// PmSampler::poll() of the recorder.
void read() {
  const std::uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
  PARAMS(CUpti_PmSampling_DecodeData_Params, decode);
  decode.pPmSamplingObject = object;
  decode.pCounterDataImage = image.data();
  decode.counterDataImageSize = image.size();
  failures += cuptiPmSamplingDecodeData(&decode) != CUPTI_SUCCESS;
  failures += decode.overflow;
  failures += decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
  PARAMS(CUpti_PmSampling_GetCounterDataInfo_Params, info);
  info.pCounterDataImage = image.data();
  info.counterDataImageSize = image.size();
  failures += cuptiPmSamplingGetCounterDataInfo(&info) != CUPTI_SUCCESS;
  for (std::size_t i = 0; i < info.numCompletedSamples; ++i) {
    PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params, sample);
    sample.pPmSamplingObject = object;
    sample.pCounterDataImage = image.data();
    sample.counterDataImageSize = image.size();
    sample.sampleIndex = i;
    failures += cuptiPmSamplingCounterDataGetSampleInfo(&sample) != CUPTI_SUCCESS;
    PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate);
    evaluate.pHostObject = host;
    evaluate.pCounterDataImage = image.data();
    evaluate.counterDataImageSize = image.size();
    evaluate.rangeIndex = i;
    evaluate.ppMetricNames = metrics.data();
    evaluate.numMetrics = metrics.size();
    evaluate.pMetricValues = values.data();
    failures += cuptiProfilerHostEvaluateToGpuValues(&evaluate) != CUPTI_SUCCESS;
  }
  samples += info.numCompletedSamples;
  ++rounds;
  if (info.numCompletedSamples != 0) clear();
  cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: pm_windows FILE INTERVAL_NS SAMPLES METRIC,METRIC...\n");
    return 2;
  }
  const int file = ::open(argv[1], O_RDWR);
  void* const page =
      file < 0 ? MAP_FAILED : mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    std::perror(argv[1]);
    return 1;
  }
  auto* const bytes = static_cast<volatile std::uint8_t*>(page);
  bytes[1] = 200;
  std::string list = argv[4];
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string& name : names) metrics.push_back(name.c_str());
  values.resize(metrics.size());
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
  open(std::strtoull(argv[2], nullptr, 10), static_cast<std::uint32_t>(std::atoi(argv[3])));
  bytes[1] = 0;
  std::uint64_t windows = 0;
  while (bytes[0] != 9) {
    if (bytes[0] != bytes[1]) {
      const bool is_on = bytes[0] == 1;
      is_on ? start() : stop();
      windows += is_on;
      bytes[1] = is_on;
    }
    if (bytes[2] != 0) {
      read();
      bytes[2] = 0;
      bytes[3] = 1;
    }
    const timespec pause{0, 300'000};
    nanosleep(&pause, nullptr);
  }
  if (bytes[1] == 1) stop();
  std::printf(
      "%llu starts, %llu samples in %llu rounds, %.2f ms of CPU time a round, %llu failures\n",
      static_cast<unsigned long long>(windows), static_cast<unsigned long long>(samples),
      static_cast<unsigned long long>(rounds),
      static_cast<double>(cpu_ns) / 1e6 / static_cast<double>(rounds ? rounds : 1),
      static_cast<unsigned long long>(failures));
}
