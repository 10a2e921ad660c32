"""The scores of all words are copied to the CPU, where only those of the last one are wanted.

Wrong: `.cpu()` of a large tensor is a copy to pageable memory: the CPU waits for the step and then for the copy.
In the trace: `Memcpy DtoH (Device -> Pageable)`, long, while nothing else runs.
Fix: choose on the GPU, and copy what is left to pinned memory without waiting for it.
"""

import torch


def parts(s):
    width = s.pick(1024, 8)
    return torch.nn.Linear(width, s.pick(8192, 32)).to(s.device, torch.bfloat16), s.randn(s.pick(4096, 4), width)


def bad(s):
    head, x = parts(s)

    @torch.inference_mode()
    def step():
        return head(x).cpu()[-1]

    return step


def good(s):
    head, x = parts(s)
    place = s.pinned(torch.empty(head.out_features, dtype=x.dtype))

    @torch.inference_mode()
    def step():
        last = head(x)[-1]
        place.copy_(last, non_blocking=True)
        return last

    return step
