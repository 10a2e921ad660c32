"""Each gradient is summed over the ranks as soon as it is there, and nothing computes meanwhile.

Wrong: all_reduce without async_op puts the collective on the stream that computes: the next matrix product of the backward
pass, which does not need the sum, waits for it.
In the trace: NCCL kernels between the matrix products of the backward pass, on the same stream.
Fix: async_op=True, which uses a stream of its own, and one wait for all of them before the optimizer.
"""

import torch
import torch.distributed as dist


def parts(s):
    width = s.pick(6144, 16)
    layers = [torch.nn.Linear(width, width, bias=False, device=s.device, dtype=torch.bfloat16) for _ in range(s.pick(6, 2))]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / dist.get_world_size())
    x = s.randn(s.pick(2048, 4), width) * (1 + s.rank)  # each rank has its own batch

    def forward():
        optimizer.zero_grad()
        return model(x).float().square().mean()

    return model, optimizer, forward


def bad(s):
    model, optimizer, forward = parts(s)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))

    def step():
        loss = forward()
        loss.backward()
        optimizer.step()
        return loss, model[0].weight.grad

    return step


def good(s):
    model, optimizer, forward = parts(s)
    running = []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: running.append(dist.all_reduce(p.grad, async_op=True)))

    def step():
        loss = forward()
        loss.backward()
        for work in running:
            work.wait()
        running.clear()
        optimizer.step()
        return loss, model[0].weight.grad

    return step
