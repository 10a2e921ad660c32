"""Faults in and around attention."""

import torch
import torch.nn.functional as F
from common import adamw, mlp, pair
from torch import nn


def split_heads(x, heads):
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


class Block(nn.Module):
    """Attention and an MLP; `attend` gets query, key and value as [batch, heads, length, width]."""

    def __init__(self, width, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def blocks(s, count, width, heads, attend):
    return nn.Sequential(*[Block(width, heads, attend) for _ in range(count)]).to(s.device, torch.bfloat16)


def turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


def rope_table(length, width, device):
    rates = 1.0 / 10000 ** (torch.arange(0, width, 2, device=device).float() / width)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


@pair
def rope_each_layer(s, good):
    """Inference of 12 blocks of short length: the table of rotary angles is computed again in each layer."""
    length, width, heads = s.pick(64, 8), s.pick(512, 32), s.pick(8, 2)
    kept = rope_table(length, width // heads, s.device)

    def attend(q, k, v):
        cos, sin = kept if good else rope_table(length, width // heads, s.device)
        return F.scaled_dot_product_attention(turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True)

    model, x = blocks(s, s.pick(12, 2), width, heads, attend), s.randn(1, length, width)

    @torch.inference_mode()
    def step():
        return model(x)

    return step


@pair
def attention_per_sequence(s, good):
    """48 sequences of unequal length in one batch: attention runs over one sequence after another."""
    count, width, heads = s.pick(48, 3), s.pick(1024, 32), s.pick(16, 2)
    lengths = [s.pick(64, 4) + s.pick(8, 1) * (i % 8) for i in range(count)]
    longest = max(lengths)
    q, k, v = (s.randn(count, heads, longest, width // heads) for _ in range(3))
    out, x = mlp(s, width, 1), s.randn(count, longest, width)
    mask = torch.zeros(count, 1, 1, longest, dtype=torch.bool, device=s.device)
    for row, length in enumerate(lengths):
        mask[row, :, :, :length] = True

    @torch.inference_mode()
    def step():
        if good:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            mixed = torch.zeros_like(q)
            for row, length in enumerate(lengths):
                mixed[row, :, :length] = F.scaled_dot_product_attention(
                    q[row, :, :length], k[row, :, :length], v[row, :, :length])
        return out(mixed.transpose(1, 2).reshape(x.shape))[0, 0]

    return step


@pair
def mask_each_layer(s, good):
    """A causal mask of length x length is built in each layer and given to attention as numbers."""
    length, width, heads = s.pick(4096, 16), s.pick(1024, 32), s.pick(16, 2)

    def attend(q, k, v):
        if good:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = torch.full((length, length), float("-inf"), device=s.device).triu(1).to(q.dtype)
        mask = mask[None, None].repeat(q.shape[0], q.shape[1], 1, 1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    model, x = blocks(s, s.pick(4, 2), width, heads, attend), s.randn(2, length, width)

    @torch.inference_mode()
    def step():
        return model(x)

    return step


@pair
def repeat_kv(s, good):
    """Decoding with 32 query heads on 4 key heads: keys and values of the cache are copied 8 times for it in each layer."""
    batch, heads, few, length, head = s.pick(16, 2), s.pick(32, 4), s.pick(4, 2), s.pick(4096, 16), s.pick(128, 8)
    width, layers = heads * head, s.pick(4, 2)
    caches = [(s.randn(batch, few, length, head), s.randn(batch, few, length, head)) for _ in range(layers)]
    query = [nn.Linear(width, width, bias=False).to(s.device, torch.bfloat16) for _ in range(layers)]
    x = s.randn(batch, 1, width)

    @torch.inference_mode()
    def step():
        h = x
        for (k, v), project in zip(caches, query):
            q = split_heads(project(h), heads)
            if good:  # one query head after another of a group becomes one more position of it
                grouped = q.view(batch, few, heads // few, head)
                mixed = F.scaled_dot_product_attention(grouped, k, v).view(batch, heads, 1, head)
            else:
                mixed = F.scaled_dot_product_attention(
                    q, k.repeat_interleave(heads // few, dim=1), v.repeat_interleave(heads // few, dim=1))
            h = h + mixed.transpose(1, 2).reshape(batch, 1, width)
        return h

    return step


@pair
def logits_of_all_positions(s, good):
    """Prefill: the logits of every position are computed, and those of the last one are used."""
    length, width, words = s.pick(2048, 16), s.pick(1024, 32), s.pick(64000, 64)

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    model, x = blocks(s, 2, width, s.pick(16, 2), attend), s.randn(4, length, width)
    head = nn.Linear(width, words, bias=False).to(s.device, torch.bfloat16)

    @torch.inference_mode()
    def step():
        hidden = model(x)
        logits = head(hidden[:, -1]) if good else head(hidden)[:, -1]
        return torch.softmax(logits.float(), dim=-1).argmax(dim=-1)

    return step
