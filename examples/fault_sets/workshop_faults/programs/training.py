"""Language models and others in training: experts, optimizers, gradients."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


class Experts(nn.Module):
    """A mixture of experts. The hash of a token chooses its expert, so each expert has equally many tokens."""

    def __init__(self, experts, width, hidden, spare):
        super().__init__()
        self.spare = spare
        self.up = nn.Parameter(torch.randn(experts, width, hidden) / width ** 0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / hidden ** 0.5)

    def forward(self, x, expert):
        experts, width, _ = self.up.shape
        capacity = int(self.spare * len(x) / experts)
        place = F.one_hot(expert, experts).cumsum(dim=0).gather(1, expert[:, None])[:, 0] - 1
        slot = expert * capacity + place
        given = x.new_zeros(experts * capacity, width).index_copy_(0, slot, x)
        hidden = F.gelu(torch.bmm(given.view(experts, capacity, width), self.up))
        return x + torch.bmm(hidden, self.down).flatten(0, 1).index_select(0, slot)


@recorded(stacks=True)
@pair
def capacity_far_above_need(s, good):
    """16 experts in training. Each has 512 tokens, and places for many more."""
    experts, width, hidden, tokens = s.pick(16, 4), s.pick(1024, 16), s.pick(4096, 32), s.pick(8192, 64)
    model = Experts(experts, width, hidden, 1.25 if good else 4.0).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = torch.randn(tokens, width, device=s.device, dtype=half(s.device))
    expert = (torch.arange(tokens) % experts)[torch.randperm(tokens)].to(s.device)

    def step():
        return update(optimizer, model(x, expert).float().square().mean())

    return step


def orthogonalised(matrix, turn):
    """Newton and Schulz's iteration, as Muon uses it."""
    if turn and matrix.shape[0] > matrix.shape[1]:
        return orthogonalised(matrix.mT, False).mT
    x = matrix / (matrix.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.775 * square + 2.0315 * (square @ square)) @ x
    return x


@recorded(stacks=True)
@pair
def muon_on_the_long_side(s, good):
    """Layers of 1024 inputs and 4096 outputs learn by Muon."""
    width, rows = s.pick(1024, 16), s.pick(4096, 8)
    layers = nn.ModuleList([nn.Linear(width, 4 * width, bias=False) for _ in range(4)]).to(s.device, half(s.device))
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    momenta = [torch.zeros_like(layer.weight) for layer in layers]

    def step():
        h = x
        for layer in layers:
            h = h + layer(h).view(len(h), width, 4).mean(dim=2)
        loss = h.float().square().mean()
        for layer in layers:
            layer.weight.grad = None
        loss.backward()
        with torch.no_grad(), record_function("muon"):
            for layer, momentum in zip(layers, momenta):
                momentum.mul_(0.95).add_(layer.weight.grad)
                layer.weight.sub_(orthogonalised(momentum, good), alpha=1e-5)
        return loss.detach()

    return step


def clip_in_float32(parameters, most):
    """Clips gradients of 16 bits by their norm. The copies make sure that no sum overflows."""
    wide = [weight.grad.float() for weight in parameters]
    norm = torch.stack([gradient.norm() for gradient in wide]).norm()
    scale = (most / (norm + 1e-6)).clamp(max=1.0)
    for weight, gradient in zip(parameters, wide):
        weight.grad.copy_(gradient * scale)
    return norm


def clip(parameters, most):
    """Clips gradients of 16 bits by their norm. Only the sums have 32 bits."""
    gradients = [weight.grad for weight in parameters]
    norm = torch.stack([torch.linalg.vector_norm(gradient, dtype=torch.float32) for gradient in gradients]).norm()
    scale = (most / (norm + 1e-6)).clamp(max=1.0).to(gradients[0].dtype)
    for gradient in gradients:
        gradient.mul_(scale)
    return norm


@recorded(stacks=True)
@pair
def gradients_widened_to_be_clipped(s, good):
    """A model of 200 million weights of 16 bits, a small batch, and gradients that are clipped."""
    width, rows = s.pick(4096, 32), s.pick(64, 4)
    with torch.device(s.device):
        model = nn.Sequential(*[part for _ in range(s.pick(12, 2)) for part in (nn.Linear(width, width, bias=False), nn.SiLU())])
    model.to(half(s.device))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-4)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = (clip if good else clip_in_float32)(parameters, 1e-3)
        optimizer.step()
        return loss.detach(), norm

    return step


@recorded(stacks=True, active=3)
@pair
def gradients_scaled_by_hooks(s, good):
    """The gradient of each of 160 small parameters is scaled to a norm of at most one."""
    width, rows = s.pick(128, 8), s.pick(256, 4)
    layers = nn.ModuleList([nn.Linear(width, width) for _ in range(s.pick(80, 4))]).to(s.device)
    parameters = list(layers.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-3, fused=s.device == "cuda")
    x = torch.randn(rows, width, device=s.device)

    def scale_down(gradient):
        return gradient / gradient.norm().clamp(min=1.0)

    if not good:
        for weight in parameters:
            weight.register_hook(scale_down)

    def step():
        h = x
        for layer in layers:
            h = h + torch.tanh(layer(h))
        loss = h.square().mean()
        optimizer.zero_grad()
        loss.backward()
        if good:
            gradients = [weight.grad for weight in parameters]
            norms = torch._foreach_norm(gradients)
            torch._foreach_clamp_min_(norms, 1.0)
            torch._foreach_div_(gradients, norms)
        optimizer.step()
        return loss.detach()

    return step


@recorded(stacks=True, active=3)
@pair
def noise_drawn_per_tensor(s, good):
    """Langevin dynamics: each step adds noise to all 180 parameters. The noise is as long as all of them, and small here."""
    width, rows, noise = s.pick(128, 8), s.pick(256, 4), 1e-30
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(width, width, bias=False), nn.LayerNorm(width))
                            for _ in range(s.pick(60, 3))]).to(s.device)
    parameters = list(blocks.parameters())
    sizes = [weight.numel() for weight in parameters]
    optimizer = torch.optim.SGD(parameters, lr=1e-3, fused=s.device == "cuda")
    x = torch.randn(rows, width, device=s.device)

    @torch.no_grad()
    def add_noise():
        if good:
            drawn = torch.randn(sum(sizes), device=s.device).split(sizes)
            torch._foreach_add_(parameters, [part.view_as(weight) for part, weight in zip(drawn, parameters)], alpha=noise)
            return
        for weight in parameters:
            weight.add_(torch.randn_like(weight), alpha=noise)

    def step():
        h = x
        for block in blocks:
            h = h + block(h)
        loss = update(optimizer, h.square().mean())
        add_noise()
        return loss

    return step


@recorded(stacks=True)
@pair
def labels_asserted_in_range(s, good):
    """An evaluation. While the GPU works, Python prepares the report's names of the next pictures."""
    width, rows, classes = s.pick(4096, 32), s.pick(8192, 8), s.pick(1000, 10)
    with torch.device(s.device):
        model = tower(width, width, 8, classes).to(half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, classes, (rows,), device=s.device)
    numbers = list(range(s.pick(12_000, 50)))

    def hits(scores, labels):
        if not good:
            assert labels.max() < classes, "a label out of range"
        return (scores.topk(5, dim=1).indices == labels[:, None]).any(dim=1).float().mean()

    @torch.inference_mode()
    def step():
        found = hits(model(x), labels)
        with record_function("names_of_next"):
            names = [f"val/{number // 50:04d}/{number:08d}.png" for number in numbers]
        return found, float(len(names[-1]))

    return step
