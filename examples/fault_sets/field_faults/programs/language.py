"""Sequences: attention, experts, recurrence, private training."""

import contextlib

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Block(nn.Module):
    """A layer of a transformer, whose attention is a function of queries, keys and values."""

    def __init__(self, width, heads, attention):
        super().__init__()
        self.heads, self.attention = heads, attention
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


@recorded(stacks=True)
@pair
def attention_in_float32(s, good):
    """Training in bfloat16. Attention once overflowed in float16, since when it is worked out in float32."""
    width, words = s.pick(768, 64), 4000

    def attention(q, k, v):
        if good:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True).to(q.dtype)

    blocks = [Block(width, width // 64, attention) for _ in range(s.pick(4, 1))]
    model = nn.Sequential(nn.Embedding(words, width), *blocks, nn.Linear(width, words)).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=s.device == "cuda")
    text = torch.randint(0, words, (s.pick(4, 1), s.pick(2049, 65)), device=s.device)

    def step():
        scores = model(text[:, :-1])
        return update(optimizer, F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten()))

    return step


@recorded(stacks=True)
@pair
def window_attention_over_all(s, good):
    """An encoder of long texts in which each token looks at itself and the 256 before it."""
    width, length, window = s.pick(512, 64), s.pick(8192, 128), s.pick(256, 16)
    at = torch.arange(length, device=s.device)
    back = at[:, None] - at[None, :]
    band = (back >= 0) & (back <= window)
    rows, count = s.pick(2, 1), length // window
    near = torch.arange(window, device=s.device)[:, None] + window - torch.arange(2 * window, device=s.device)[None, :]
    allowed = ((near >= 0) & (near <= window)).repeat(rows * count, 1, 1, 1)
    allowed[::count, :, :, :window] = False  # nothing is before the first block

    def over_all(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=band)

    def with_block_before(x):
        blocks = x.unflatten(2, (count, window)).permute(0, 2, 1, 3, 4)
        return torch.cat([F.pad(blocks, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1], blocks], dim=3).flatten(0, 1)

    def in_blocks(q, k, v):
        queries = q.unflatten(2, (count, window)).permute(0, 2, 1, 3, 4).flatten(0, 1)
        mixed = F.scaled_dot_product_attention(queries, with_block_before(k), with_block_before(v), attn_mask=allowed)
        return mixed.unflatten(0, (rows, count)).permute(0, 2, 1, 3, 4).flatten(2, 3)

    blocks = [Block(width, width // 64, in_blocks if good else over_all) for _ in range(s.pick(4, 1))]
    model = nn.Sequential(*blocks).to(s.device, half(s.device)).eval()
    x = torch.randn(rows, length, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        return model(x).float().mean(dim=(1, 2))

    return step


class Experts(nn.Module):
    """Each of eight experts chooses an eighth of the tokens; the others count as zero times what it says of them."""

    def __init__(self, width, count, good):
        super().__init__()
        self.good, self.gate = good, nn.Linear(width, count)
        self.experts = nn.ModuleList([tower(width, 4 * width, 1, width, nn.GELU) for _ in range(count)])

    def forward(self, x):
        share = self.gate(x).softmax(dim=1)
        weight, chosen = share.topk(len(x) // len(self.experts), dim=0)
        if self.good:
            mixed = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                rows = chosen[:, number]
                mixed = mixed.index_add(0, rows, weight[:, number, None] * expert(x.index_select(0, rows)))
        else:
            mixed, gate = torch.zeros_like(x), torch.zeros_like(share).scatter(0, chosen, weight)
            for number, expert in enumerate(self.experts):
                mixed = mixed + gate[:, number, None] * expert(x)
        return x + mixed


@recorded(stacks=True)
@pair
def every_expert_for_every_token(s, good):
    """Training of a mixture of experts."""
    width, tokens = s.pick(512, 32), s.pick(32_768, 64)
    model = nn.Sequential(*[Experts(width, 8, good) for _ in range(s.pick(2, 1))]).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=s.device == "cuda")
    x = torch.randn(tokens, width, device=s.device, dtype=half(s.device))

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step


class Turning(nn.Module):
    """A recurrent network whose state is turned by an orthogonal matrix, so that it neither grows nor fades."""

    def __init__(self, width, good):
        super().__init__()
        self.good, self.into = good, nn.Linear(width, width)
        self.turn = parametrizations.orthogonal(nn.Linear(width, width, bias=False), orthogonal_map="cayley")

    def forward(self, x):
        h = torch.zeros_like(x[0])
        with parametrize.cached() if self.good else contextlib.nullcontext():
            for part in self.into(x).unbind(0):
                h = torch.tanh(part + h @ self.turn.weight.t())
        return h


@recorded(stacks=True)
@pair
def orthogonal_weight_made_each_time(s, good):
    """Training of a recurrent network on a series of 12 measurements."""
    width = s.pick(256, 16)
    model = Turning(width, good).to(s.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    series = torch.randn(s.pick(12, 6), s.pick(512, 4), width, device=s.device)

    def step():
        return update(optimizer, model(series).square().mean())

    return step


@recorded(stacks=True)
@pair
def gradients_sample_by_sample(s, good):
    """Private training: the gradient of each sample is cut to length 1 before all are added."""
    count, inputs, width = s.pick(12, 4), s.pick(256, 16), s.pick(512, 16)
    model = tower(inputs, width, 3, 10).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    names = [name for name, _ in model.named_parameters()]
    x, labels = torch.randn(count, inputs, device=s.device), torch.randint(0, 10, (count,), device=s.device)

    def loss_of(weights, sample, label):
        return F.cross_entropy(torch.func.functional_call(model, weights, sample[None]), label[None])

    def one_by_one():
        gradients = []
        for sample, label in zip(x, labels):
            loss = F.cross_entropy(model(sample[None]), label[None])
            gradients.append(torch.autograd.grad(loss, list(model.parameters())))
        return [torch.stack(parts) for parts in zip(*gradients)]

    def at_once():
        weights = {name: weight.detach() for name, weight in model.named_parameters()}
        found = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))(weights, x, labels)
        return [found[name] for name in names]

    def step():
        gradients = at_once() if good else one_by_one()
        length = sum(g.flatten(1).square().sum(dim=1) for g in gradients).sqrt()
        factor = (1 / (length + 1e-6)).clamp(max=1)
        for parameter, g in zip(model.parameters(), gradients):
            parameter.grad = torch.tensordot(factor, g, dims=1) / count
        optimizer.step()
        return length

    return step
