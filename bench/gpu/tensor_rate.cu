// Matrix products whose rate is known in cycles: the tensor cores of each SM work a chosen share of them, and nothing else runs.
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu/tensor_rate.cu -o tensor_rate
//   python3 bench/gpu/hardware_known.py --tensor-rate ./tensor_rate
// Arguments: the share of the cycles (1: as fast as they can), seconds. Prints as JSON what was done: 64x128x16 bf16 products in shared memory,
// 2 x 64 x 128 x 16 FLOPs each, over 4,096 FLOPs (dense bf16) in each cycle of the SM by its own clock. Needs Hopper.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kGroups = 2;             // warpgroups of an SM, which take turns
constexpr int kProductsOfARound = 32;  // of each group, before it may rest
constexpr double kFlopsOfAProduct = 2.0 * 64 * 128 * 16;
constexpr double kPeakOfACycle = 4096;
constexpr std::size_t kSharedBytes = 120 * 1024;  // more than half of an SM's: one block each

__device__ std::uint64_t descriptor(const void* at) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(at));
  return ((address & 0x3FFFF) >> 4) | (std::uint64_t{8} << 16) | (std::uint64_t{16} << 32);
}

__device__ void product(float (&d)[64], std::uint64_t a, std::uint64_t b) {
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1, 0, 0;\n"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(a), "l"(b));
#undef D16
#undef D4
}

__global__ void __launch_bounds__(kGroups * 128)
    products(int rounds, float share, long long* cycles, float* out) {
  extern __shared__ __align__(1024) unsigned char memory[];
  for (std::size_t i = threadIdx.x; i < kSharedBytes / 4; i += blockDim.x)
    reinterpret_cast<unsigned*>(memory)[i] = 0;
  __syncthreads();
  const std::uint64_t a = descriptor(memory), b = descriptor(memory + 16 * 1024);
  float d[64];
  for (float& value : d) value = 0;
  const long long begin = clock64();
  for (int round = 1; round <= rounds; ++round) {
    const long long start = clock64();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < kProductsOfARound; ++i) product(d, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (share < 1) {
      // Each group's round is that many cycles at the full rate.
      const auto whole = static_cast<long long>(kGroups * kProductsOfARound * kFlopsOfAProduct /
                                                kPeakOfACycle / share);
      while (clock64() - start < whole) {
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
  float sum = 0;
  for (const float value : d) sum += value;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "tensor_rate: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const float share = argc > 1 ? static_cast<float>(std::atof(argv[1])) : 1;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  if (share <= 0 || share > 1 || seconds <= 0) {
    std::fprintf(stderr, "usage: tensor_rate [SHARE (0 to 1)] [SECONDS]\n");
    return 2;
  }
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "no GPU");
  check(cudaFuncSetAttribute(products, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kSharedBytes)),
        "shared memory");
  long long* cycles = nullptr;
  float* out = nullptr;
  check(cudaMalloc(&cycles, sms * sizeof *cycles), "memory");
  check(cudaMalloc(&out, sms * kGroups * 128 * sizeof *out), "memory");
  constexpr int kRounds = 1000;
  double flops = 0, all_cycles = 0;
  long long launches = 0;
  std::vector<long long> each(static_cast<std::size_t>(sms));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    products<<<sms, kGroups * 128, kSharedBytes>>>(kRounds, share, cycles, out);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(each.data(), cycles, each.size() * sizeof each[0], cudaMemcpyDeviceToHost),
          "copy");
    ++launches;
    for (const long long of_one : each) all_cycles += static_cast<double>(of_one);
    flops += static_cast<double>(sms) * kRounds * kGroups * kProductsOfARound * kFlopsOfAProduct;
  }
  std::printf("{\"share\": %.3f, \"launches\": %lld, \"known\": %.4f}\n", share, launches,
              flops / all_cycles / kPeakOfACycle);
}
