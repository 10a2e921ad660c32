"""Models that are adapted: by rewards, in few bits, compiled."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded
from torch import nn
from torch.profiler import record_function


class Adapted(nn.Module):
    """A frozen layer with an adapter that learns. Without the adapter it is the reference."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


@recorded(stacks=True, active=2)
@pair
def reference_scored_in_every_epoch(s, good):
    """GRPO with adapters. Each rollout is learnt from four times, and the policy may not go far from the reference."""
    width, words, rows, length = s.pick(2048, 32), s.pick(8192, 64), s.pick(32, 2), s.pick(257, 9)
    plain = [nn.Linear(width, width, bias=False) for _ in range(s.pick(8, 2))]
    embed, head = nn.Embedding(words, width).requires_grad_(False), nn.Linear(width, words, bias=False).requires_grad_(False)
    adapted = [Adapted(layer, s.pick(16, 2)) for layer in plain]
    nn.ModuleList([embed, head, *adapted]).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW([weight for layer in adapted for weight in (layer.down.weight, layer.up.weight)], lr=1e-5)
    tokens = torch.randint(0, words, (rows, length), device=s.device)
    advantage = torch.randn(rows, 1, device=s.device)

    def log_probs(layers, tokens):
        x = embed(tokens[:, :-1])
        for layer in layers:
            x = x + F.silu(layer(x))
        scores = head(x)
        return -F.cross_entropy(scores.flatten(0, 1).float(), tokens[:, 1:].flatten(), reduction="none").view(rows, -1)

    def score_reference():
        with torch.no_grad(), record_function("reference"):
            return log_probs(plain, tokens)

    def step():
        reference_scores = score_reference() if good else None
        old = None
        for _ in range(4):
            if not good:
                reference_scores = score_reference()
            new = log_probs(adapted, tokens)
            old = new.detach() if old is None else old
            away = reference_scores - new
            penalty = away.exp() - away - 1
            loss = (0.04 * penalty - (new - old).exp() * advantage).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step


class Int8Linear(nn.Module):
    """A frozen layer whose weights have 8 bits and a scale for each output."""

    def __init__(self, inputs, outputs, good):
        super().__init__()
        self.good = good
        self.register_buffer("quantised", torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8))
        self.register_buffer("scale", torch.full((outputs, 1), 0.01 / inputs ** 0.5))

    def forward(self, x):
        if self.good:
            return F.linear(x, self.quantised.to(x.dtype)) * self.scale.view(-1)
        weight = self.quantised.to(x.dtype) * self.scale
        return F.linear(x, weight)


@recorded(stacks=True)
@pair
def scales_multiplied_into_weights(s, good):
    """A frozen base model of 8 bits reads 16 rows."""
    width, rows = s.pick(8192, 64), s.pick(16, 4)
    with torch.device(s.device):
        layers = nn.Sequential(*[Int8Linear(width, width, good) for _ in range(s.pick(8, 2))])
    for layer in layers:
        layer.scale = layer.scale.to(half(s.device))
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        h = x
        for layer in layers:
            h = h + F.silu(layer(h))
        return h.float().mean(dim=1)

    return step


def gated(x, gate, weight):
    """A norm, a gate and a residual, written out."""
    scaled = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight
    return x + scaled * torch.sigmoid(1.702 * scaled) * torch.tanh(gate) + 0.01 * gate


class GateWithCounter(nn.Module):
    """Counts its calls, for a log."""

    def __init__(self, width):
        super().__init__()
        self.calls, self.weight = 0, nn.Parameter(torch.ones(width))

    def forward(self, x, gate):
        self.calls += 1
        return gated(x, gate, self.weight)


class Gate(nn.Module):
    """Leaves counting to its caller."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, gate):
        return gated(x, gate, self.weight)


@recorded(stacks=True)
@pair
def counter_inside_compiled_module(s, good):
    """A compiled module gates the stream of a model, three times a step."""
    torch._dynamo.reset()
    width, rows = s.pick(2048, 32), s.pick(8192, 16)
    module = s.compile((Gate if good else GateWithCounter)(width).to(s.device).eval())
    x, gate = torch.randn(2, rows, width, device=s.device)
    calls = [0]

    @torch.inference_mode()
    def step():
        h = x
        for _ in range(3):
            calls[0] += 1
            with record_function("gate"):
                h = module(h, gate)
        return h.mean(dim=1)

    return step
