// How a recording can end with CUPTI, measured with a bare client: which calls of one thread
// break the capture of a graph on another, and whether all work is there when CUPTI has given
// back its last buffer.
//
//   nvcc -O2 -std=c++17 -I$CUDA/extras/CUPTI/include bench/gpu/cupti_ending.cu
//       -o cupti_ending -lcuda -ldl
//   cupti_ending libcupti.so.13
//
// Each scene runs in a separate process: a broken capture, or a graph that CUPTI left, may take the
// process with it.
#include <cuda.h>
#include <cupti.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

// One list; clang-format would make a staircase of it.
// clang-format off
#define FUNCTIONS(X)                                                                          \
  X(cuptiGetVersion) X(cuptiActivityEnable) X(cuptiActivityDisable) X(cuptiActivityFlushAll)  \
  X(cuptiActivityFlushPeriod) X(cuptiActivityGetNextRecord) X(cuptiActivityRegisterCallbacks) \
  X(cuptiActivityRegisterTimestampCallback) X(cuptiActivitySetAttribute) X(cuptiSubscribe)    \
  X(cuptiUnsubscribe) X(cuptiEnableCallback) X(cuptiFinalize)
// clang-format on
#include "cupti_functions.h"

namespace {
constexpr std::size_t kBufferBytes = 8192;
constexpr long long kCyclesPerMs = 1'700'000;  // about
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD};
std::atomic<int> outside{0};
struct {
  int kernels = 0, copies = 0, memsets = 0, unfinished = 0;
  double shortest_ms = 1e9, longest_ms = 0;
} seen;
double ticks_per_ms = 1;

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}
void sleep_us(int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

__global__ void spin(long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) {
  }
}
void launch(double ms, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(static_cast<long long>(ms * kCyclesPerMs));
}

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::calloc(1, kBufferBytes));
  *size = kBufferBytes;
  *most = 0;
  ++outside;
}
void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                       std::size_t valid) {
  for (CUpti_Activity* record = nullptr;
       cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS;) {
    seen.copies += record->kind == CUPTI_ACTIVITY_KIND_MEMCPY;
    seen.memsets += record->kind == CUPTI_ACTIVITY_KIND_MEMSET;
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    const double ms = static_cast<double>(kernel->end - kernel->start) / ticks_per_ms;
    ++seen.kernels;
    seen.unfinished += kernel->start == 0 || kernel->end == 0;
    seen.shortest_ms = std::min(seen.shortest_ms, ms);
    seen.longest_ms = std::max(seen.longest_ms, ms);
  }
  std::free(buffer);
  --outside;
}

// Neither CUDA nor CUPTI is there before the fork.
const char* library_path = nullptr;
template <typename Scene>
bool in_a_process(const char* name, const Scene& scene) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_loaded = load_cupti(library_path);
    if (is_loaded) scene();
    std::fflush(stdout);
    _exit(is_loaded ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0)
    std::printf("%-58s ended with %s %d\n", name, WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return status == 0;
}

void attach() {
  std::uint8_t yes = 1;
  std::size_t size = sizeof yes;
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &yes);
  cupti.cuptiActivityRegisterTimestampCallback(ticks);
}
void enable() {
  cupti.cuptiActivityRegisterCallbacks(request, complete);
  for (const CUpti_ActivityKind kind : kKinds) cupti.cuptiActivityEnable(kind);
}
void disable() {
  for (const CUpti_ActivityKind kind : kKinds) cupti.cuptiActivityDisable(kind);
}
void flush() { cupti.cuptiActivityFlushAll(0); }

bool has_left = false;
void CUPTIAPI leave_here(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  if (has_left || static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT)
    return;
  has_left = cupti.cuptiFinalize() == CUPTI_SUCCESS;
}
void leave() {  // from the end of a call that does nothing
  CUpti_SubscriberHandle subscriber = nullptr;
  has_left = false;
  cupti.cuptiSubscribe(&subscriber, leave_here, nullptr);
  cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                            CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent);
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
}

// ---- which calls break a capture

std::atomic<bool> done{false};
std::atomic<long> whole{0}, broken{0};

void capture_graphs(cudaStreamCaptureMode mode) {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  while (!done) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cudaError_t problem = cudaStreamBeginCapture(stream, mode);
    for (int i = 0; i < 100 && problem == cudaSuccess; ++i) {
      launch(0, stream);
      problem = cudaGetLastError();
    }
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (problem == cudaSuccess) problem = ended;
    if (problem == cudaSuccess) problem = cudaGraphInstantiate(&ready, graph, 0);
    if (problem == cudaSuccess) problem = cudaGraphLaunch(ready, stream);
    if (problem == cudaSuccess) problem = cudaStreamSynchronize(stream);
    ++(problem == cudaSuccess ? whole : broken);
    if (problem != cudaSuccess) return;
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  }
}

// `act` again and again on a thread in relaxed capture mode, while another thread captures.
void during_captures(const char* name, const std::function<void()>& act) {
  for (const bool global : {true, false}) {
    in_a_process(name, [&] {
      cudaFree(nullptr);
      attach();
      std::thread thread(capture_graphs,
                         global ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal);
      sleep_us(50'000);
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      cuThreadExchangeStreamCaptureMode(&mode);
      int acts = 0;
      for (const auto begin = Clock::now(); ms_since(begin) < 700 && broken == 0; ++acts) {
        act();
        sleep_us(500);
      }
      std::printf("%-58s %-13s %5ld whole %2ld broken in %5d\n", name,
                  global ? "global" : "thread_local", whole.load(), broken.load(), acts);
      std::fflush(stdout);
      _exit(0);  // the other thread still captures
    });
  }
}

// ---- whether the last buffer means that all is there

using Work = std::function<void(cudaStream_t, cudaStream_t)>;
void recorded(const char* name, const Work& work, bool off_first) {
  in_a_process(name, [&] {
    const auto begin = Clock::now();
    const std::uint64_t begin_ticks = __rdtsc();
    cudaStream_t one = nullptr, two = nullptr;
    cudaFree(nullptr);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    attach();
    ticks_per_ms = static_cast<double>(__rdtsc() - begin_ticks) / ms_since(begin);
    enable();
    work(one, two);
    if (off_first) disable();
    const auto since = Clock::now();
    do {
      flush();
      sleep_us(200);
    } while (outside != 0 && ms_since(since) < 2000);
    const double back_ms = ms_since(since);
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(one, &capturing);
    if (capturing != cudaStreamCaptureStatusNone) {
      cudaGraph_t graph = nullptr;
      std::printf("the capture meanwhile: %s; ",
                  cudaGetErrorName(cudaStreamEndCapture(one, &graph)));
    }
    const bool idle = cudaStreamQuery(one) == cudaSuccess && cudaStreamQuery(two) == cudaSuccess;
    std::printf(
        "%-42s %-16s buffers outside %d after %6.1f ms; GPU %s; %d kernels of %.2f to %.2f ms, %d "
        "unfinished; %d copies, "
        "%d memsets\n",
        name, off_first ? "switched off" : "still on", outside.load(), back_ms,
        idle ? "idle" : "busy", seen.kernels, seen.kernels ? seen.shortest_ms : 0, seen.longest_ms,
        seen.unfinished, seen.copies, seen.memsets);
  });
}

cudaGraphExec_t graph_of_ten(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < 10; ++i) launch(20, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  return ready;
}

// A kernel runs while CUPTI leaves; a graph that was captured while it was there
// is replayed afterwards.
void leave_and_replay() {
  cudaStream_t stream = nullptr;
  cudaFree(nullptr);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  attach();
  enable();
  const cudaGraphExec_t graph = graph_of_ten(stream);
  launch(300, stream);
  disable();
  const auto begin = Clock::now();
  leave();
  std::printf("CUPTI leaves under a kernel of 300 ms: %.1f ms, then %s\n", ms_since(begin),
              cudaGetErrorName(cudaDeviceSynchronize()));
  cudaGraphLaunch(graph, stream);
  std::printf("a graph captured before that is replayed: %s\n",
              cudaGetErrorName(cudaDeviceSynchronize()));
}
}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: cupti_ending LIBCUPTI\n");
    return 2;
  }
  library_path = arguments[1];
  const bool works = in_a_process("CUDA", [] {
    std::uint32_t version = 0;
    cupti.cuptiGetVersion(&version);
    std::printf("CUPTI %u\n", version);
    if (const cudaError_t problem = cudaFree(nullptr); problem != cudaSuccess) {
      std::printf("no GPU can be used: %s\n", cudaGetErrorName(problem));
      std::fflush(stdout);
      _exit(2);
    }
  });
  if (!works) return 2;
  const auto record = [] {
    enable();
    sleep_us(300);
    disable();
    flush();
  };
  during_captures("nothing", [] {});
  during_captures("cuCtxSynchronize", [] { cuCtxSynchronize(); });
  during_captures("kinds switched on, flush, switched off", record);
  during_captures("kinds on and CUPTI asked every 5 ms", [] {
    enable();
    cupti.cuptiActivityFlushPeriod(5);
    sleep_us(20'000);
    cupti.cuptiActivityFlushPeriod(0);
  });
  during_captures("attached, on, off, cuptiFinalize at cuCtxGetCurrent", [&] {
    record();
    leave();
    attach();
  });
  for (const bool off_first : {false, true}) {
    recorded(
        "a kernel of 200 ms", [](cudaStream_t one, cudaStream_t) { launch(200, one); }, off_first);
    recorded(
        "100 kernels of 2 ms on two streams",
        [](cudaStream_t one, cudaStream_t two) {
          for (int i = 0; i < 100; ++i) launch(2, i % 2 ? one : two);
        },
        off_first);
    recorded(
        "a graph of 10 kernels of 20 ms, twice",
        [](cudaStream_t one, cudaStream_t) {
          const cudaGraphExec_t graph = graph_of_ten(one);
          for (int i = 0; i < 2; ++i) cudaGraphLaunch(graph, one);
        },
        off_first);
    recorded(
        "20 copies and 20 memsets after a kernel",
        [](cudaStream_t one, cudaStream_t) {
          constexpr std::size_t kBytes = std::size_t{256} << 20;
          void *device = nullptr, *host = nullptr;
          cudaMalloc(&device, kBytes);
          cudaMallocHost(&host, kBytes);
          launch(50, one);
          for (int i = 0; i < 20; ++i) {
            cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, one);
            cudaMemsetAsync(device, 0, kBytes, one);
          }
        },
        off_first);
    recorded(
        "a kernel of 100 ms, another stream captures",
        [](cudaStream_t one, cudaStream_t two) {
          launch(100, two);
          cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed);
          for (int i = 0; i < 10; ++i) launch(1, one);
        },
        off_first);
  }
  in_a_process("CUPTI leaves", leave_and_replay);
  return 0;
}
