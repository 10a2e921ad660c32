// Stands between the process that samples hardware counters and libcupti: times what sampling calls
// cost, and pauses the GPU's sampling. LANESCOPE_CUPTI_LIBRARY names it; its file is called
// libcupti.so.shim, so that the sampler takes it for a libcupti:
//   g++ -std=c++20 -O2 -shared -fPIC -I.../include pm_shim.cpp -o libcupti.so.shim
//     -Wl,--no-as-needed -L.../lib -l:libcupti.so.13 -Wl,-rpath,.../lib
// PM_SHIM_LOG: file for the times, written when the process ends. PM_SHIM_CONTROL: a file of one
// byte, looked at every millisecond; '0' pauses sampling. PM_SHIM_KEEP=N: only every N-th request to
// clear the image is done, to see whether decoding adds to what is there.
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace {

struct Cost {
  const char* name;
  std::uint64_t calls = 0, ns = 0;
};
Cost decoding{"decode"}, evaluating{"evaluate"}, telling{"sample info"}, clearing{"clear"};
std::uint64_t samples = 0, rounds = 0, starts = 0, failures = 0;
std::mutex mutex;
CUpti_PmSampling_Object* object = nullptr;
bool is_paused = false, is_drained = false;
std::FILE* log_file = nullptr;

template <typename Function>
Function* real(const char* name) {
  static void* library = dlopen("libcupti.so.13", RTLD_NOW);
  auto* found = library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
  if (!found) std::fprintf(stderr, "no %s in libcupti.so.13\n", name);
  return found;
}
#define REAL(name) static auto* const next = real<decltype(name)>(#name)

std::uint64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

class Timed {
 public:
  explicit Timed(Cost* cost) : cost_(*cost), begin_(cpu_ns()) {}
  ~Timed() {
    cost_.ns += cpu_ns() - begin_;
    ++cost_.calls;
  }

 private:
  Cost& cost_;
  std::uint64_t begin_;
};

void watch(const char* path) {
  const int file = open(path, O_RDONLY);
  auto* byte = static_cast<volatile char*>(mmap(nullptr, 1, PROT_READ, MAP_SHARED, file, 0));
  if (byte == MAP_FAILED) return;
  while (true) {
    usleep(1000);
    const bool wanted = *byte != '0';
    const std::lock_guard lock(mutex);
    if (!object || wanted == !is_paused) continue;
    CUptiResult result;
    if (wanted) {
      REAL(cuptiPmSamplingStart);
      CUpti_PmSampling_Start_Params start = {};
      start.structSize = CUpti_PmSampling_Start_Params_STRUCT_SIZE;
      start.pPmSamplingObject = object;
      result = next(&start);
      ++starts;
    } else {
      REAL(cuptiPmSamplingStop);
      CUpti_PmSampling_Stop_Params stop = {};
      stop.structSize = CUpti_PmSampling_Stop_Params_STRUCT_SIZE;
      stop.pPmSamplingObject = object;
      result = next(&stop);
    }
    if (result != CUPTI_SUCCESS && failures++ < 5 && log_file)
      std::fprintf(log_file, "%s: CUptiResult %d\n", wanted ? "start" : "stop", result);
    is_paused = !wanted;
    is_drained = false;
  }
}

struct AtEnd {
  AtEnd() {
    if (const char* path = std::getenv("PM_SHIM_LOG")) log_file = std::fopen(path, "w");
    if (const char* path = std::getenv("PM_SHIM_CONTROL")) std::thread(watch, path).detach();
  }
  ~AtEnd() {
    if (!log_file) return;
    std::fprintf(log_file, "%llu samples in %llu rounds, started again %llu times, %llu failures\n",
                 static_cast<unsigned long long>(samples), static_cast<unsigned long long>(rounds),
                 static_cast<unsigned long long>(starts),
                 static_cast<unsigned long long>(failures));
    for (const Cost* cost : {&decoding, &evaluating, &telling, &clearing})
      std::fprintf(
          log_file, "%-12s %8llu calls %10.3f ms of CPU time, %8.2f us a call, %6.2f us a sample\n",
          cost->name, static_cast<unsigned long long>(cost->calls),
          static_cast<double>(cost->ns) / 1e6,
          cost->calls ? static_cast<double>(cost->ns) / 1e3 / static_cast<double>(cost->calls) : 0,
          samples ? static_cast<double>(cost->ns) / 1e3 / static_cast<double>(samples) : 0);
    std::fclose(log_file);
  }
} at_end;

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiPmSamplingStart(CUpti_PmSampling_Start_Params* p) {
  REAL(cuptiPmSamplingStart);
  const std::lock_guard lock(mutex);
  object = p->pPmSamplingObject;
  return next(p);
}
CUptiResult CUPTIAPI cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params* p) {
  REAL(cuptiPmSamplingStop);
  const std::lock_guard lock(mutex);
  object = nullptr;
  return is_paused ? CUPTI_SUCCESS : next(p);
}
CUptiResult CUPTIAPI cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* p) {
  REAL(cuptiPmSamplingDecodeData);
  const std::lock_guard lock(mutex);
  if (is_paused && is_drained) {
    p->overflow = 0;
    p->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
    return CUPTI_SUCCESS;
  }
  is_drained = true;
  ++rounds;
  const Timed timed(&decoding);
  return next(p);
}
CUptiResult CUPTIAPI
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  REAL(cuptiProfilerHostEvaluateToGpuValues);
  const Timed timed(&evaluating);
  return next(p);
}
CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* p) {
  REAL(cuptiPmSamplingCounterDataGetSampleInfo);
  const Timed timed(&telling);
  return next(p);
}
CUptiResult CUPTIAPI
cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* p) {
  REAL(cuptiPmSamplingGetCounterDataInfo);
  const CUptiResult result = next(p);
  samples += p->numCompletedSamples;
  if (log_file && rounds <= 12) {
    REAL(cuptiPmSamplingCounterDataGetSampleInfo);
    CUpti_PmSampling_CounterData_GetSampleInfo_Params first = {}, last = {};
    for (auto* one : {&first, &last}) {
      one->structSize = CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE;
      one->pPmSamplingObject = object;
      one->pCounterDataImage = p->pCounterDataImage;
      one->counterDataImageSize = p->counterDataImageSize;
    }
    last.sampleIndex = p->numCompletedSamples ? p->numCompletedSamples - 1 : 0;
    if (p->numCompletedSamples && next(&first) == CUPTI_SUCCESS && next(&last) == CUPTI_SUCCESS)
      std::fprintf(log_file, "round %llu: %zu completed, %zu populated of %zu, from %llu to %llu\n",
                   static_cast<unsigned long long>(rounds), p->numCompletedSamples,
                   p->numPopulatedSamples, p->numTotalSamples,
                   static_cast<unsigned long long>(first.startTimestamp),
                   static_cast<unsigned long long>(last.endTimestamp));
  }
  return result;
}
CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params* p) {
  REAL(cuptiPmSamplingCounterDataImageInitialize);
  static const char* const keep = std::getenv("PM_SHIM_KEEP");
  static std::uint64_t asked = 0;
  if (keep && asked++ % std::strtoull(keep, nullptr, 10) != 0) return CUPTI_SUCCESS;
  const Timed timed(&clearing);
  return next(p);
}

}  // extern "C"
