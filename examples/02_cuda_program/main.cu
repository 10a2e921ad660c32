// A program that knows neither torch nor lanescope: kernels, copies, two streams, an event that one
// stream waits for, a CUDA graph, NVTX ranges. For `lanescope record -- ./cuda_program`.
//
// Each iteration does the same work, so that a recording can be counted: see README.md.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
void nvtxRangePushA(const char*) {}
int nvtxRangePop() { return 0; }
#endif

namespace {

#define CHECK_CUDA(call)                                                                     \
  do {                                                                                       \
    const cudaError_t error = (call);                                                        \
    if (error != cudaSuccess) {                                                              \
      std::fprintf(stderr, "cuda_program: %s: %s\n", #call, cudaGetErrorString(error));      \
      std::exit(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ? 2 : 1); \
    }                                                                                        \
  } while (false)

constexpr int kCount = 1 << 20;
constexpr int kBlock = 256;
constexpr int kGrid = kCount / kBlock;
constexpr int kGraphKernels = 3;

__global__ void scale(float* values, float by) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}

__global__ void add(float* into, const float* from) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  into[at] += from[at];
}

struct Buffers {
  float* host = nullptr;  // pinned
  float* input = nullptr;
  float* sum = nullptr;
};

// sum = (2 * 1 + 2 * 1) and three times + 2: captured once, launched in each iteration.
cudaGraphExec_t capture(const Buffers& buffers, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kGraphKernels; ++i)
    add<<<kGrid, kBlock, 0, stream>>>(buffers.sum, buffers.input);
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK_CUDA(cudaGraphDestroy(graph));
  return executable;
}

void iterate(const Buffers& buffers, cudaStream_t copies, cudaStream_t work, cudaEvent_t landed,
             cudaGraphExec_t graph) {
  constexpr std::size_t bytes = kCount * sizeof(float);
  nvtxRangePushA("iteration");
  nvtxRangePushA("copy in");
  CHECK_CUDA(cudaMemcpyAsync(buffers.input, buffers.host, bytes, cudaMemcpyHostToDevice, copies));
  CHECK_CUDA(cudaEventRecord(landed, copies));
  nvtxRangePop();
  nvtxRangePushA("compute");
  CHECK_CUDA(cudaMemsetAsync(buffers.sum, 0, bytes, work));
  CHECK_CUDA(cudaStreamWaitEvent(work, landed, 0));
  scale<<<kGrid, kBlock, 0, work>>>(buffers.input, 2.0f);
  add<<<kGrid, kBlock, 0, work>>>(buffers.sum, buffers.input);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaGraphLaunch(graph, work));
  nvtxRangePop();
  nvtxRangePushA("copy out");
  CHECK_CUDA(cudaStreamSynchronize(work));
  nvtxRangePop();
  nvtxRangePop();
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 20;
  if (iterations < 1 || argc > 2) {
    std::fprintf(stderr, "usage: cuda_program [ITERATIONS]   (default 20)\n");
    return 2;
  }
  Buffers buffers;
  CHECK_CUDA(cudaMallocHost(&buffers.host, kCount * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&buffers.input, kCount * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&buffers.sum, kCount * sizeof(float)));
  for (int i = 0; i < kCount; ++i) buffers.host[i] = 1.0f;
  cudaStream_t copies, work;
  CHECK_CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  CHECK_CUDA(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
  cudaEvent_t landed;
  CHECK_CUDA(cudaEventCreateWithFlags(&landed, cudaEventDisableTiming));
  cudaGraphExec_t graph = capture(buffers, work);

  for (int i = 0; i < iterations; ++i) iterate(buffers, copies, work, landed, graph);

  std::vector<float> result(kCount);
  CHECK_CUDA(
      cudaMemcpy(result.data(), buffers.sum, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  const float expected = 2.0f * (1 + kGraphKernels);
  for (int i = 0; i < kCount; ++i) {
    if (result[i] != expected) {
      std::fprintf(stderr, "cuda_program: expected %g at %d, found %g\n", expected, i, result[i]);
      return 1;
    }
  }
  CHECK_CUDA(cudaGraphExecDestroy(graph));
  CHECK_CUDA(cudaEventDestroy(landed));
  CHECK_CUDA(cudaStreamDestroy(copies));
  CHECK_CUDA(cudaStreamDestroy(work));
  CHECK_CUDA(cudaFree(buffers.sum));
  CHECK_CUDA(cudaFree(buffers.input));
  CHECK_CUDA(cudaFreeHost(buffers.host));
  std::printf("%d iterations: %d kernels, %d of them by a graph, %d copies, %d memsets\n",
              iterations, (2 + kGraphKernels) * iterations, kGraphKernels * iterations,
              iterations + 1, iterations);
  return 0;
}
