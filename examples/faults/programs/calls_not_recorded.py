"""A library next to torch calls the driver itself, and torch.profiler does not record those calls.

Wrong: nothing in the program. Its buffers are cleared by cuMemsetD32Async, as a library that is not torch's does it; of the
driver's calls torch.profiler records those that launch kernels.
In the trace: `Memset (Device)` on the GPU without the call that began it.
Fix: of the trace: a recorder that sees the driver's calls. Here torch clears the buffers itself.
"""

import ctypes

import torch


def program(s, clear):
    width = s.pick(4096, 16)
    x, weight, buffers = s.randn(width, width), s.randn(width, width), [s.randn(width, width) for _ in range(4)]

    @torch.inference_mode()
    def step():
        y = x
        for buffer in buffers:
            clear(buffer)
            y = torch.relu(y @ weight + buffer) * 0.015625
        return y

    return step


def bad(s):
    if s.device != "cuda":
        return good(s)
    call = ctypes.CDLL("libcuda.so.1").cuMemsetD32Async
    call.argtypes = [ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p]

    def clear(buffer):
        error = call(buffer.data_ptr(), 0, buffer.nbytes // 4, torch.cuda.current_stream().cuda_stream)
        assert error == 0, error

    return program(s, clear)


def good(s):
    return program(s, lambda buffer: buffer.zero_())
