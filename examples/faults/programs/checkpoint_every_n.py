"""Every third step copies the weights to the CPU before it goes on.

Wrong: state.cpu() for each parameter waits for the GPU and copies to pageable memory; meanwhile the loop waits.
In the trace: two kinds of steps, quick ones and slow ones; the slow ones hold `Memcpy DtoH (Device -> Pageable)`.
Fix: copy to pinned buffers on a stream of its own (an optimizer would wait for it, the forward need not), or save less often.
"""

import torch


def parts(s):
    width = s.pick(4096, 16)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(4)]).to(s.device, torch.bfloat16)
    x = s.randn(s.pick(16384, 4), width)

    def work():
        loss = model(x).float().square().mean()
        loss.backward()
        model.zero_grad()
        return loss

    return model, work


def bad(s):
    model, work = parts(s)
    steps, saved = [0], {}

    def step():
        steps[0] += 1
        if steps[0] % 3 == 0:
            saved.update((name, p.detach().cpu()) for name, p in model.named_parameters())
        return work()

    return step


def good(s):
    if s.device != "cuda":
        return bad(s)
    model, work = parts(s)
    side, steps = torch.cuda.Stream(), [0]
    saved = {name: torch.empty(p.shape, dtype=p.dtype, pin_memory=True) for name, p in model.named_parameters()}

    def step():
        steps[0] += 1
        if steps[0] % 3 == 0:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for name, p in model.named_parameters():
                    saved[name].copy_(p.detach(), non_blocking=True)
        return work()

    return step
