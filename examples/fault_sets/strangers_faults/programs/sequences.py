"""Text and time series: training and serving."""

import collections

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn


class Block(nn.Module):
    """A causal layer of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


def language_model(s, width, layers, words=8000):
    blocks = [Block(width, width // 64 or 1) for _ in range(layers)]
    model = nn.Sequential(nn.Embedding(words, width), *blocks, nn.Linear(width, words))
    return model.to(s.device, half(s.device))


@recorded(stacks=True)
@pair
def steps_sliced_in_a_loop(s, good):
    """A recurrent layer of one's own takes its inputs by x[:, t] out of what a linear layer made of the whole sequence."""
    rows, length, width = s.pick(2048, 8), s.pick(24, 8), s.pick(512, 32)
    into, state = nn.Linear(width, width).to(s.device), nn.Linear(width, width, bias=False).to(s.device)
    series = torch.randn(rows, length, width, device=s.device)
    optimizer = torch.optim.SGD([*into.parameters(), *state.parameters()], lr=1e-3)

    def step():
        x, h = into(series), torch.zeros(rows, width, device=s.device)
        inputs = x.unbind(1) if good else None
        for t in range(length):
            h = torch.tanh((inputs[t] if good else x[:, t]) + state(h))
        return update(optimizer, h.square().mean())

    return step


@pair
def graphs_for_every_length(s, good):
    """Prompts of many lengths are scored by CUDA graphs: one for each exact length, of which the last four are kept."""
    model = language_model(s, s.pick(512, 64), s.pick(6, 1)).eval()
    rows, kept, turn = s.pick(8, 2), collections.OrderedDict(), [0]
    prompts = [torch.randint(0, 8000, (rows, 113 + 7 * number % 16), device=s.device) for number in range(16)]

    def captured(length):
        words = torch.zeros(rows, length, dtype=torch.long, device=s.device)
        if s.device != "cuda":
            return words, None, None
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(words)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            scores = model(words)
        return words, scores, graph

    @torch.no_grad()
    def step():
        prompt = prompts[turn[0] % 16]
        turn[0] += 1
        length = prompt.shape[1]
        size = 128 if good else length
        if size not in kept:
            kept[size] = captured(size)
            if len(kept) > 4:
                kept.popitem(last=False)
        kept.move_to_end(size)
        words, scores, graph = kept[size]
        words[:, :length].copy_(prompt)
        if graph is None:
            scores = model(words)
        else:
            graph.replay()
        return scores[:, length - 1].float().mean()

    return step


@recorded(stacks=True)
@pair
def batch_split_over_streams(s, good):
    """Somebody heard that streams run side by side: a batch of 128 is served in four pieces on four streams."""
    width = s.pick(512, 64)
    blocks = nn.Sequential(*[Block(width, width // 64) for _ in range(s.pick(3, 1))]).to(s.device, half(s.device)).eval()
    x = torch.randn(s.pick(128, 16), 64, width, device=s.device, dtype=half(s.device))
    streams = [torch.cuda.Stream() for _ in range(4)] if s.device == "cuda" else [None] * 4

    def pieces():
        now, done = torch.cuda.current_stream() if streams[0] else None, []
        for stream, part in zip(streams, x.chunk(4)):
            if stream is None:
                done.append(blocks(part))
                continue
            stream.wait_stream(now)
            with torch.cuda.stream(stream):
                done.append(blocks(part))
        for stream in streams:
            if stream is not None:
                now.wait_stream(stream)
        return torch.cat(done)

    @torch.inference_mode()
    def step():
        return (blocks(x) if good else pieces()).float().mean()

    return step


@recorded(stacks=True)
@pair
def plateau_reads_the_loss(s, good):
    """ReduceLROnPlateau hears of each step's loss, not of an epoch's. It reads it on the CPU, which prepares the words."""
    rows, length = s.pick(96, 4), s.pick(128, 16)
    model = language_model(s, s.pick(1024, 64), s.pick(2, 1), 4000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=s.device == "cuda")
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=10_000)
    table = {f"word{number}": number for number in range(4000)}
    lines = [" ".join(f"word{(row * 31 + at * 7) % 4000}" for at in range(length)) for row in range(rows)]
    total, count = torch.zeros((), device=s.device), [0]

    def step():
        ids = [[table[word] for word in line.split()] for line in lines]
        words = torch.tensor(ids, dtype=torch.int32).to(s.device, non_blocking=True)
        scores = model(words[:, :-1])
        loss = update(optimizer, F.cross_entropy(scores.flatten(0, 1).float(), words[:, 1:].flatten().long()))
        total.add_(loss)
        count[0] += 1
        if not good:
            scheduler.step(loss)
        elif count[0] % 1000 == 0:
            scheduler.step(total / 1000)
            total.zero_()
        return loss

    return step


class FrozenLinear(torch.autograd.Function):
    """The product with a weight that is kept in 8 bits and a scale."""

    @staticmethod
    def forward(ctx, x, weight, scale, good):
        ctx.save_for_backward(x, weight, scale)
        ctx.good = good
        return x @ (weight.to(x.dtype) * scale).t()

    @staticmethod
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        grad_weight = None
        if not ctx.good or ctx.needs_input_grad[1]:
            grad_weight = grad.t() @ x
        return grad @ (weight.to(x.dtype) * scale), grad_weight, None, None


class LowRank(nn.Module):
    """A frozen layer with a trained correction of low rank."""

    def __init__(self, width, good):
        super().__init__()
        self.good = good
        self.register_buffer("weight", torch.randint(-127, 128, (width, width), dtype=torch.int8))
        self.register_buffer("scale", torch.full((width, 1), 0.01 / width**0.5))
        self.down, self.up = nn.Linear(width, 16, bias=False), nn.Linear(16, width, bias=False)

    def forward(self, x):
        return FrozenLinear.apply(x, self.weight, self.scale.to(x.dtype), self.good) + self.up(self.down(x))


@pair
def gradient_of_frozen_weight(s, good):
    """LoRA over weights of 8 bits. The function that multiplies by them gives their gradient too, which nobody wants."""
    width, rows = s.pick(4096, 64), s.pick(8192, 64)
    first, layers = tower(64, width, 1, width), [part for _ in range(3) for part in (LowRank(width, good), nn.GELU())]
    model = nn.Sequential(first, *layers).to(s.device)
    for part in model.modules():
        if isinstance(part, nn.Linear):
            part.to(half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    x = torch.randn(rows, 64, device=s.device, dtype=half(s.device))

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step
