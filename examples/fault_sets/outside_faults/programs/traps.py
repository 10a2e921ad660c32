"""Programs that look faulty and are not. The docstring says what must not be said."""

import torch
import torch.nn.functional as F
from common import half, recorded, tower, trap, update
from torch import nn


@recorded(stacks=True)
@trap
def sharpness_aware_step(s, good):
    """SAM: the second pass has other weights. Not: the same batch passes twice, use the first result."""
    width = s.pick(2048, 64)
    model = tower(width, width, 5, width).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    parameters = list(model.parameters())
    x = torch.randn(s.pick(4096, 32), width, device=s.device, dtype=half(s.device))

    def step():
        optimizer.zero_grad()
        model(x).float().square().mean().backward()
        climbs = torch._foreach_mul([p.grad for p in parameters], 0.05)
        with torch.no_grad():
            torch._foreach_add_(parameters, climbs)
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        with torch.no_grad():
            torch._foreach_sub_(parameters, climbs)
        optimizer.step()
        return loss.detach()

    return step


@trap
def tf32_is_on(s, good):
    """float32 with TF32. Not: switch TF32 on."""
    width = s.pick(2048, 64)
    model = tower(width, width, 5, width).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(8192, 32), width, device=s.device)

    def step():
        torch.backends.cuda.matmul.allow_tf32 = True
        loss = update(optimizer, model(x).square().mean())
        torch.backends.cuda.matmul.allow_tf32 = False  # the next program runs in the same process
        return loss

    return step


@trap
def packed_by_one_cat(s, good):
    """Sequences of all lengths become one batch without padding. Not: cat copies what grows."""
    width, count = s.pick(1024, 64), s.pick(64, 8)
    lengths = torch.randint(s.pick(64, 8), s.pick(512, 32), (count,))
    sequences = [torch.randn(length, width, device=s.device, dtype=half(s.device)) for length in lengths.tolist()]
    owner = torch.repeat_interleave(torch.arange(count), lengths).to(s.device)
    share = (1.0 / lengths).to(s.device, half(s.device))[:, None]
    labels = torch.randint(0, 10, (count,), device=s.device)
    model, head = tower(width, width, 6, width).to(s.device, half(s.device)), nn.Linear(width, 10).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4)

    def step():
        h = model(torch.cat(sequences))
        pooled = torch.zeros(count, width, device=s.device, dtype=h.dtype).index_add(0, owner, h) * share
        return update(optimizer, F.cross_entropy(head(pooled).float(), labels))

    return step


@recorded(stacks=True)
@trap
def views_before_products(s, good):
    """An autoencoder whose decoder is its encoder transposed. Products read transposed views as they are. Not: transposes cost."""
    width = s.pick(2048, 64)
    weights = nn.ParameterList(torch.randn(width, width) / width ** 0.5 for _ in range(3)).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(weights, lr=1e-3)
    x = torch.randn(s.pick(8192, 32), width, device=s.device, dtype=half(s.device))

    def step():
        h = x
        for weight in weights:
            h = (h @ weight).relu()
        for weight in reversed(weights):
            h = h @ weight.t()
        return update(optimizer, (h - x).float().square().mean())

    return step
