"""The first collective of the program is inside the first step that is measured.

Wrong: a process group connects its GPUs when its first collective is called: the CPU is held for a good part of a second.
In the trace: the first record_param_comms takes thousands of times as long as the others, and the first step with it.
Fix: one small collective before the loop, or init_process_group(device_id=...), which connects at once.
"""

import torch
import torch.distributed as dist


def program(s):
    width = s.pick(4096, 16)
    weight = s.randn(width, width) / width**0.5
    x = s.randn(s.pick(4096, 4), width) * (1 + s.rank)

    @torch.inference_mode()
    def compute():
        h = x
        for _ in range(s.pick(12, 2)):
            h = h @ weight
        return h

    @torch.inference_mode()
    def step():
        messages = [x[0].clone(), x[1].clone()]
        sums = [dist.all_reduce(message, async_op=True) for message in messages]
        h = compute()  # at the same time
        for each in sums:
            each.wait()
        return h

    compute()  # all else is ready: what is left for the first step is the connection
    s.finish()
    return step


def bad(s):
    return program(s)


def good(s):
    step = program(s)
    dist.all_reduce(torch.zeros(1, device=s.device))
    s.finish()
    return step
