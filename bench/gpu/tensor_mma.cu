// Products of single warps (mma.sync), whose rate is known in cycles: as hardware_known.py --tensor-rate runs them.
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu/tensor_mma.cu -o tensor_mma
// Arguments: the kind by a number (1 bf16, 0.75 tf32, 0.5 fp16 with fp16 sums, less int8), seconds. Prints as JSON the operations over
// what an SM of a Hopper can do in each cycle (4,096, 2,048, 4,096 and 8,192), by its own clock.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kWarps = 16, kChains = 4;

template <int kKind>
__global__ void products(int rounds, long long* cycles, float* out) {
  unsigned a[4] = {threadIdx.x & 1, 0, 0, 0}, b[2] = {0, 0};
  float d[kChains][4] = {};
  unsigned h[kChains][4] = {};
  const long long begin = clock64();
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int i = 0; i < 4 * kChains; ++i) {
      const int c = i % kChains;
      if constexpr (kKind == 0)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
      if constexpr (kKind == 1)
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
      if constexpr (kKind == 2)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, "
            "{%0,%1};"
            : "+r"(h[c][0]), "+r"(h[c][1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
      if constexpr (kKind == 3)
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+r"(h[c][0]), "+r"(h[c][1]), "+r"(h[c][2]), "+r"(h[c][3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += d[c][0] + d[c][3] + static_cast<float>(h[c][0]);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "tensor_mma: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const double kind = argc > 1 ? std::atof(argv[1]) : 1,
               seconds = argc > 2 ? std::atof(argv[2]) : 1;
  const int number = kind >= 1 ? 0 : kind >= 0.7 ? 1 : kind >= 0.5 ? 2 : 3;
  const double of_one[] = {2.0 * 16 * 8 * 16, 2.0 * 16 * 8 * 8, 2.0 * 16 * 8 * 16,
                           2.0 * 16 * 8 * 32};
  const double peak[] = {4096, 2048, 4096, 8192};
  void (*const kernels[])(int, long long*, float*) = {products<0>, products<1>, products<2>,
                                                      products<3>};
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "no GPU");
  long long* cycles = nullptr;
  float* out = nullptr;
  check(cudaMalloc(&cycles, sms * sizeof *cycles), "memory");
  check(cudaMalloc(&out, sms * kWarps * 32 * sizeof *out), "memory");
  constexpr int kRounds = 10000;
  double operations = 0, all_cycles = 0;
  std::vector<long long> each(static_cast<std::size_t>(sms));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    kernels[number]<<<sms, kWarps * 32>>>(kRounds, cycles, out);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(each.data(), cycles, each.size() * sizeof each[0], cudaMemcpyDeviceToHost),
          "copy");
    for (const long long of_sm : each) all_cycles += static_cast<double>(of_sm);
    operations += static_cast<double>(sms) * kRounds * kWarps * 4 * kChains * of_one[number];
  }
  std::printf("{\"kind\": %d, \"known\": %.4f}\n", number, operations / all_cycles / peak[number]);
}
