// A matrix product whose rate is known in cycles: C = A B^T, bf16, with A of M x K and B of N x K in the GPU's memory.
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu/tensor_gemm.cu -o tensor_gemm
//   python3 bench/gpu/hardware_known.py --tensor-gemm ./tensor_gemm
// Arguments: seconds, K (16384). One block an SM makes tiles of C of 128 x 256: one warpgroup copies A and B into shared memory, two multiply
// (wgmma, 64 x 256 x 16). Prints as JSON the FLOPs over 4,096 (dense bf16) in each cycle of each SM, by the SMs' own clocks, and whether
// C is right. Needs Hopper.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4;
constexpr int kInFlight = 2;  // slices whose copies may be on their way; two stages more are in use
constexpr int kBytesA = kTileM * kTileK * 2, kBytesB = kTileN * kTileK * 2,
              kStageBytes = kBytesA + kBytesB;
constexpr std::size_t kSharedBytes = std::size_t{kStages} * kStageBytes + 1024;
constexpr double kPeakOfACycle = 4096;

__device__ std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

// Rows of 8 x 16 bytes lie together; the next 8 columns 128 bytes further, the next 8 rows after all columns of the tile.
__device__ std::uint64_t descriptor(std::uint32_t address) {
  return ((address & 0x3FFFF) >> 4) | (std::uint64_t{128 >> 4} << 16) |
         (std::uint64_t{(kTileK * 16) >> 4} << 32);
}

__device__ void product(float (&d)[128], std::uint64_t a, std::uint64_t b) {
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
      "%128, %129, 1, 1, 1, 0, 0;\n"
      : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
      : "l"(a), "l"(b));
#undef D16
#undef D4
}

__device__ void wait(std::uint32_t barrier, int phase) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra "
      "done;\nbra again;\ndone:\n}\n" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
__device__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

// One warpgroup copies a slice of K of one matrix: 16 bytes are 8 numbers of a row.
__device__ void copy_slice(std::uint32_t to, const __nv_bfloat16* from, int rows, int k) {
  for (int chunk = threadIdx.x % 128; chunk < rows * (kTileK / 8); chunk += 128) {
    // Neighbouring threads write neighbouring 16 bytes.
    const int row = chunk / kTileK * 8 + chunk % 8, column = chunk / 8 % (kTileK / 8);
    const std::uint32_t at = to + chunk * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(at),
                 "l"(from + static_cast<std::size_t>(row) * k + column * 8)
                 : "memory");
  }
}

__global__ void __launch_bounds__(384) multiply(const __nv_bfloat16* a, const __nv_bfloat16* b,
                                                float* c, int m, int n, int k, long long* cycles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const std::uint32_t tiles = shared_address(memory), barriers = tiles + kStages * kStageBytes;
  const auto full = [&](int stage) { return barriers + stage * 8; };
  const auto empty = [&](int stage) { return barriers + (kStages + stage) * 8; };
  const long long begin = clock64();
  if (threadIdx.x == 0)
    for (int stage = 0; stage < kStages; ++stage) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;\n" ::"r"(full(stage)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 256;\n" ::"r"(empty(stage)));
    }
  asm volatile("fence.proxy.async;\n" ::: "memory");
  __syncthreads();
  const int across = n / kTileN, count = (m / kTileM) * across, slices = k / kTileK;
  int stage = 0, phase = 0;
  const auto step = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  if (threadIdx.x >= 256) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
    int pending = 0, arrive_stage = 0;  // copies of the last two slices may be on their way
    const auto hand_over = [&] {
      asm volatile("fence.proxy.async;\n" ::: "memory");
      arrive(full(arrive_stage));
      if (++arrive_stage == kStages) arrive_stage = 0;
    };
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
      const __nv_bfloat16 *from_a = a + static_cast<std::size_t>(tile / across) * kTileM * k,
                          *from_b = b + static_cast<std::size_t>(tile % across) * kTileN * k;
      for (int slice = 0; slice < slices; ++slice, step()) {
        wait(empty(stage), phase ^ 1);
        const std::uint32_t to = tiles + stage * kStageBytes;
        copy_slice(to, from_a + slice * kTileK, kTileM, k);
        copy_slice(to + kBytesA, from_b + slice * kTileK, kTileN, k);
        asm volatile("cp.async.commit_group;\n" ::: "memory");
        if (++pending <= kInFlight) continue;
        asm volatile("cp.async.wait_group %0;\n" ::"n"(kInFlight) : "memory");
        hand_over();
        --pending;
      }
    }
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    for (; pending > 0; --pending) hand_over();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
    const int group = threadIdx.x / 128;
    float d[128];
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
      for (float& value : d) value = 0;
      int before = -1;
      for (int slice = 0; slice < slices; ++slice, step()) {
        wait(full(stage), phase);
        const std::uint32_t at = tiles + stage * kStageBytes;
        asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
        for (int i = 0; i < kTileK / 16; ++i)
          product(d, descriptor(at + group * (kBytesA / 2) + i * 256),
                  descriptor(at + kBytesA + i * 256));
        asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
        if (before >= 0) arrive(empty(before));
        before = stage;
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
      arrive(empty(before));
      const int lane = threadIdx.x % 32, warp = (threadIdx.x / 32) % 4;
      const int row = (tile / across) * kTileM + group * 64 + warp * 16 + lane / 4,
                column = (tile % across) * kTileN + lane % 4 * 2;
      for (int i = 0; i < 128; i += 4) {
        float* at = c + static_cast<std::size_t>(row) * n + column + i * 2;
        *reinterpret_cast<float2*>(at) = {d[i], d[i + 1]};
        *reinterpret_cast<float2*>(at + static_cast<std::size_t>(8) * n) = {d[i + 2], d[i + 3]};
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
}

// Small whole numbers, so that all sums are exact.
__host__ __device__ float number(std::size_t row, std::size_t column, int seed) {
  return static_cast<float>(
      static_cast<int>((row * 7 + column * 13 + seed + row * column % 11) % 5) - 2);
}
__global__ void fill(__nv_bfloat16* to, std::size_t rows, std::size_t columns, int seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < rows * columns;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = __float2bfloat16(number(i / columns, i % columns, seed));
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "tensor_gemm: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const int m = 24 * kTileM, n = 11 * kTileN, k = argc > 2 ? std::atoi(argv[2]) : 16384;
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "no GPU");
  __nv_bfloat16 *a = nullptr, *b = nullptr;
  float* c = nullptr;
  long long* cycles = nullptr;
  check(cudaMalloc(&a, std::size_t(m) * k * 2), "memory");
  check(cudaMalloc(&b, std::size_t(n) * k * 2), "memory");
  check(cudaMalloc(&c, std::size_t(m) * n * 4), "memory");
  check(cudaMalloc(&cycles, sms * sizeof *cycles), "memory");
  fill<<<1024, 256>>>(a, m, k, 1);
  fill<<<1024, 256>>>(b, n, k, 2);
  check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kSharedBytes)),
        "shared memory");
  double flops = 0, all_cycles = 0;
  long long launches = 0;
  std::vector<long long> each(static_cast<std::size_t>(sms));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    multiply<<<sms, 384, kSharedBytes>>>(a, b, c, m, n, k, cycles);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(each.data(), cycles, each.size() * sizeof each[0], cudaMemcpyDeviceToHost),
          "copy");
    ++launches;
    for (const long long of_one : each) all_cycles += static_cast<double>(of_one);
    flops += 2.0 * m * n * k;
  }
  std::vector<float> result(std::size_t(m) * n);
  check(cudaMemcpy(result.data(), c, result.size() * 4, cudaMemcpyDeviceToHost), "copy");
  int wrong = 0;
  for (int i = 0; i < 500; ++i) {
    const std::size_t row = (i * 7919u) % m, column = (i * 104729u) % n;
    double sum = 0;
    for (int j = 0; j < k; ++j)
      sum += static_cast<double>(number(row, j, 1)) * number(column, j, 2);
    wrong += std::fabs(sum - result[row * n + column]) > 0.5;
  }
  std::printf("{\"launches\": %lld, \"known\": %.4f, \"wrong\": %d, \"flops\": %.1f}\n", launches,
              flops / all_cycles / kPeakOfACycle, wrong, flops);
  return wrong != 0;
}
