"""A hand-made kernel instead of an operator, with much shared memory and few threads.

Wrong: each block keeps 44 KB of shared memory and has 64 threads; five such blocks fill a multiprocessor's shared memory
with 10 warps where 64 have room, and too few loads are on their way.
In the trace: aten::silu with a kernel `own_silu` of far less than the GPU's memory bandwidth; its `shared memory`.
Fix: 512 threads for the same shared memory.
"""

import torch

PER_BLOCK = 11264
SOURCE = """
extern "C" __global__ void own_silu(const float* x, float* y) {
  __shared__ float stage[11264];
  const long long first = blockIdx.x * 11264ll;
#pragma unroll 2
  for (int i = threadIdx.x; i < 11264; i += blockDim.x) stage[i] = x[first + i];
  __syncthreads();
#pragma unroll 2
  for (int i = threadIdx.x; i < 11264; i += blockDim.x) y[first + i] = stage[i] / (1.0f + __expf(-stage[i]));
}
"""


def replace_silu(threads):
    kernel = torch.cuda._compile_kernel(SOURCE, "own_silu")

    def silu(x):
        y = torch.empty_like(x)
        kernel(grid=(x.numel() // PER_BLOCK, 1, 1), block=(threads, 1, 1), args=[x, y])
        return y

    library = torch.library.Library("aten", "IMPL")
    library.impl("silu", silu, "CUDA")
    return library


def program(s, threads):
    library = replace_silu(threads) if s.device == "cuda" else None
    x = s.randn(PER_BLOCK, s.pick(6000, 1), dtype=torch.float32)

    @torch.inference_mode()
    def step():
        return torch.nn.functional.silu(x) if library or s.device != "cuda" else None

    return step


def bad(s):
    return program(s, 64)


def good(s):
    return program(s, 512)
