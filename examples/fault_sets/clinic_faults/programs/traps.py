"""Programs that look faulty and are not. The docstring says what must not be said."""

import torch
import torch.nn.functional as F
from common import half, recorded, trap, tower, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@trap
def log_probs_in_chunks(s, good):
    """Log-probs over 64,000 words, eight rows of a batch one after the other so that the scores fit. Not: do it in one call."""
    width, words, rows, length = s.pick(1024, 16), s.pick(64_000, 100), 8, s.pick(2048, 16)
    head = nn.Linear(width, words, bias=False).to(s.device, half(s.device))
    hidden = torch.randn(rows, length, width, device=s.device, dtype=half(s.device))
    said = torch.randint(0, words, (rows, length), device=s.device)

    @torch.inference_mode()
    def step():
        with record_function("log_probs"):
            found = [-F.cross_entropy(head(part).float(), own, reduction="none") for part, own in zip(hidden, said)]
        return torch.stack(found).mean(dim=1)

    return step


@recorded(stacks=True)
@trap
def orbits_in_float64(s, good):
    """Orbits of 4096 bodies, which have to stay the same for long. Not: double precision by accident."""
    count = s.pick(4096, 16)
    place = torch.randn(count, 3, device=s.device, dtype=torch.float64)
    speed = torch.zeros_like(place)
    mass = torch.rand(count, 1, device=s.device, dtype=torch.float64) / count

    def pull(place):
        square = torch.cdist(place, place).square() + 1e-4
        share = square.pow(-1.5)
        return share @ (mass * place) - (share @ mass) * place

    @torch.inference_mode()
    def step():
        here, now = place, speed
        for _ in range(2):
            now = now + 1e-3 * pull(here)
            here = here + 1e-3 * now
        return here.mean(dim=0)

    return step


@recorded(stacks=True)
@trap
def pinned_slot_reused(s, good):
    """Two pinned buffers take turns; before one is written again its event is awaited, long over. Not: the wait holds the step."""
    width, rows = s.pick(2048, 32), s.pick(8192, 8)
    model = tower(256, width, 8, 256).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=s.device == "cuda")
    samples = torch.randn(rows, 256, dtype=half(s.device))
    slots = [s.pinned(torch.empty_like(samples)) for _ in range(2)]
    events = [torch.cuda.Event() if s.device == "cuda" else None for _ in range(2)]
    count = [0]

    def step():
        now = count[0] % 2
        count[0] += 1
        if events[now] is not None and count[0] > 2:
            events[now].synchronize()
        slots[now].copy_(samples)
        x = slots[now].to(s.device, non_blocking=True)
        if events[now] is not None:
            events[now].record()
        return update(optimizer, model(x).float().square().mean())

    return step


@recorded(stacks=True)
@trap
def python_hidden_behind_the_gpu(s, good):
    """Python sums up the texts of the next batch while the GPU works on large products. Not: Python holds the step."""
    width, rows = s.pick(4096, 32), s.pick(8192, 8)
    with torch.device(s.device):
        model = tower(width, width, 6, width).to(half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    texts = torch.randint(1, 100, (s.pick(20_000, 100),)).tolist()

    def step():
        loss = update(optimizer, model(x).float().square().mean())
        with record_function("next_texts"):
            longest = max([length * 2 + 1 for length in texts])
        return loss, float(longest)

    return step


@recorded(stacks=True)
@trap
def pages_gathered_for_attention(s, good):
    """Four layers attend to pages that lie scattered in the pool of each. Not: gather once, or leave the gather out."""
    requests, pages, page, heads, size = s.pick(32, 2), s.pick(64, 4), 16, s.pick(8, 2), s.pick(128, 8)
    pools = [torch.randn(2, requests * pages, page, heads, size, device=s.device, dtype=half(s.device)) for _ in range(4)]
    tables = [torch.randperm(requests * pages).view(requests, pages).to(s.device) for _ in range(4)]
    queries = nn.ModuleList([nn.Linear(heads * size, heads * size) for _ in pools]).to(s.device, half(s.device)).eval()
    x = torch.randn(requests, heads * size, device=s.device, dtype=half(s.device))
    count = [0]

    @torch.inference_mode()
    def step():
        table = tables[count[0] % 4]
        count[0] += 1
        h = x
        for pool, query in zip(pools, queries):
            with record_function("paged_attention"):
                keys, values = pool[:, table].flatten(2, 3).transpose(2, 3)
                mixed = F.scaled_dot_product_attention(query(h).view(requests, heads, 1, size), keys, values)
            h = h + mixed.flatten(1)
        return h.float().mean(dim=1)

    return step
