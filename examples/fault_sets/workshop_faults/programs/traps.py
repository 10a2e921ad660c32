"""Programs that look faulty and are not. The docstring says what must not be said."""

import threading

import torch
import torch.nn.functional as F
from common import captured, half, recorded, tower, trap, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@trap
def results_leave_on_a_second_stream(s, good):
    """Results are copied to pinned memory while the GPU works on the next batch. Not: the copies hold the step."""
    width, rows = s.pick(4096, 32), s.pick(8192, 8)
    with torch.device(s.device):
        model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(12)]).to(half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    results = [None, None]  # kept until they are copied
    outside = [s.pinned(torch.empty(rows, width, dtype=half(s.device))) for _ in range(2)]
    cuda = s.device == "cuda"
    side = torch.cuda.Stream() if cuda else None
    made, left = [[torch.cuda.Event() if cuda else None for _ in range(2)] for _ in range(2)]
    count = [0]

    @torch.inference_mode()
    def step():
        now = count[0] % 2
        count[0] += 1
        if not cuda:
            return outside[now].copy_(model(x)).float().mean(dim=1)
        torch.cuda.current_stream().wait_event(left[now])
        results[now] = model(x)
        made[now].record()
        side.wait_event(made[now])
        with torch.cuda.stream(side):
            outside[now].copy_(results[now], non_blocking=True)
            left[now].record()
        return results[now].float().mean(dim=1)

    return step


@recorded(stacks=True)
@trap
def penalty_by_second_derivatives(s, good):
    """A critic whose gradient should have the norm 1. Not: leave out create_graph, or the second backward pass."""
    width, rows = s.pick(2048, 32), s.pick(4096, 8)
    critic = tower(256, width, 4, 1, nn.SiLU).to(s.device, half(s.device))
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-5, fused=s.device == "cuda")
    real, made = torch.randn(2, rows, 256, device=s.device, dtype=half(s.device))
    share = torch.rand(rows, 1, device=s.device, dtype=half(s.device))

    def step():
        between = (share * real + (1 - share) * made).requires_grad_()
        with record_function("penalty"):
            slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            penalty = (slope.float().norm(dim=1) - 1).square().mean()
        return update(optimizer, critic(made).float().mean() - critic(real).float().mean() + 10 * penalty)

    return step


@recorded(stacks=True)
@trap
def one_user_reads_all_weights(s, good):
    """A captured decoder writes eight tokens for one user; each needs the one before. Not: launches, Python, or all in one pass."""
    width = s.pick(8192, 32)
    with torch.inference_mode(), torch.device(s.device):
        layers = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(8)]).to(half(s.device)).eval()
        token = torch.randn(1, width, dtype=half(s.device))

    def write():
        h = token
        for layer in layers:
            h = F.rms_norm(h + F.silu(layer(h)), (width,))
        token.copy_(h)
        return h

    with torch.inference_mode():
        replay = captured(s, write)

    @torch.inference_mode()
    def step():
        token.fill_(0.5)
        for _ in range(8):
            written = replay()
        return written.float().square().mean()

    return step


@recorded(stacks=True)
@trap
def heartbeat_thread_sleeps(s, good):
    """A thread tells every 20 ms that the program lives, and sleeps otherwise. Not: the thread, its sleep or its lock holds the step."""
    width, rows = s.pick(4096, 32), s.pick(8192, 8)
    with torch.device(s.device):
        model = tower(width, width, 4, 1000).to(half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    stopped, beats = threading.Event(), [0]

    def tell():
        while not stopped.wait(0.02):
            beats[0] += 1

    threading.Thread(target=tell, daemon=True, name="heartbeat").start()

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step


@recorded(stacks=True)
@trap
def router_in_float32(s, good):
    """The router of experts computes in float32, as its papers ask; it is small. Not: cast less, or float32 by accident."""
    width, hidden, tokens, experts = s.pick(2048, 16), s.pick(8192, 32), s.pick(8192, 8), s.pick(64, 4)
    up, down = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)
    nn.ModuleList([up, down]).to(s.device, half(s.device))
    router = nn.Linear(width, experts, bias=False).to(s.device)
    optimizer = torch.optim.SGD([*up.parameters(), *down.parameters(), *router.parameters()], lr=1e-6)
    x = torch.randn(tokens, width, device=s.device, dtype=half(s.device))

    def step():
        with record_function("router"):
            share = router(x.float()).softmax(dim=-1).amax(dim=-1, keepdim=True)
        h = x + down(F.silu(up(x))) * share.to(x.dtype)
        return update(optimizer, h.float().square().mean())

    return step
