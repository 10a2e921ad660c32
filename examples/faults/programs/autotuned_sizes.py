"""A Triton kernel is tuned again for each size.

Wrong: @triton.autotune with the exact size in its key, and sizes that change, here from each eighth step on.
In the trace: one step holds hundreds of runs of the kernel in several builds, with a memset of 256 MB between them.
Fix: a key that changes rarely: the size rounded up to a power of two.
"""

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for the CPU alone
    triton = None

if triton:

    def time_briefly(run, quantiles):
        return triton.testing.do_bench(run, warmup=1, rep=3, quantiles=quantiles)

    @triton.autotune([triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in
                      ((512, 1), (1024, 4), (2048, 8), (4096, 16))], key=["key"], do_bench=time_briefly)
    @triton.jit
    def own_gelu(x, y, n, key, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(y + at, (value / (1 + tl.exp(-1.702 * value))).to(y.dtype.element_ty), mask=at < n)


def program(s, exact):
    if s.device == "cuda" and not triton:
        raise RuntimeError("expected Triton next to torch for CUDA")
    most, steps = s.pick(2**27, 2**8), [0]
    x, weight, rows = s.randn(most), s.randn(s.pick(4096, 16), s.pick(4096, 16)), s.randn(s.pick(8192, 4), s.pick(4096, 16))
    y = torch.empty_like(x)

    def gelu(n, key):
        if s.device == "cuda":
            own_gelu[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, key)
        else:
            torch.mul(x[:n], torch.sigmoid(1.702 * x[:n]), out=y[:n])

    @torch.inference_mode()
    def step():
        steps[0] += 1
        n = most * 3 // 4 + 16 * (steps[0] // 8)
        gelu(n, n if exact else 1 << (n - 1).bit_length())
        return y[: most // 2 : 4096] + 0, (rows @ weight)[:, 0]

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
