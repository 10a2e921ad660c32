"""Language models that decode, diffusion models that sample, encoders."""

import torch
import torch.nn.functional as F
from common import pair, recorded, update
from torch import nn
from torch.profiler import record_function


class DecoderLayer(nn.Module):
    """One layer of a decoder with a cache; it sees one new token at a time."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        rows, length, width = x.shape
        return x.view(rows, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, cache, at, mask):
        q, k, v = (self.split(part) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        cache[0][:, :, at : at + 1], cache[1][:, :, at : at + 1] = k, v
        if mask is None:
            seen = F.scaled_dot_product_attention(q, cache[0][:, :, : at + 1], cache[1][:, :, : at + 1])
        else:
            seen = F.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=mask)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    def __init__(self, s, layers: int, width: int, heads: int, rows: int, room: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(width, heads) for _ in range(layers)])
        self.words, self.head = nn.Embedding(s.pick(32_000, 500), width), nn.Linear(width, s.pick(32_000, 500))
        kind = torch.bfloat16 if s.device == "cuda" else torch.float32
        self.to(s.device, kind)
        self.caches = [[torch.randn(rows, heads, room, width // heads, device=s.device, dtype=kind) for _ in "kv"]
                       for _ in range(layers)]

    def forward(self, token, at, mask=None):
        x = self.words(token)[:, None]
        for layer, cache in zip(self.layers, self.caches):
            x = layer(x, cache, at, mask)
        return self.head(x[:, 0])


@recorded(shapes=True, marks=False)
@pair
def attention_over_empty_cache(s, good):
    """The cache has room for thousands of tokens, of which 200 are there; each attention reads all of it under a mask."""
    rows, room, begin = s.pick(16, 2), s.pick(8192, 1024), 200
    model = Decoder(s, 4, s.pick(1024, 64), 8, rows, room)
    start = torch.randint(0, 500, (rows,), device=s.device)
    places = torch.arange(room, device=s.device)

    @torch.inference_mode()
    def step():
        token = start
        for at in range(begin, begin + 6):
            logits = model(token, at, None if good else (places <= at)[None, None, None])
            token = logits.argmax(dim=-1)
        return token

    return step


@recorded(stacks=True, memory=True)
@pair
def beams_copy_the_cache(s, good):
    """After each token of a beam search all caches are gathered anew, also the prompt's part, which all beams share."""
    beams, prompt = s.pick(32, 4), s.pick(2048, 256)
    model = Decoder(s, 4, s.pick(1024, 64), 8, beams, prompt + 8)
    start = torch.randint(0, 500, (beams,), device=s.device)

    @torch.inference_mode()
    def step():
        token, score = start, torch.zeros(beams, device=s.device)
        for at in range(prompt, prompt + 4):
            total = score[:, None] + model(token, at).float().log_softmax(dim=-1)
            score, flat = total.flatten().topk(beams)
            parents, token = flat // total.shape[1], flat % total.shape[1]
            for cache in model.caches:
                for number in range(2):
                    if good:
                        cache[number][:, :, prompt:] = cache[number][parents, :, prompt:]
                    else:
                        cache[number] = cache[number][parents]
        return score

    return step


class CrossLayer(nn.Module):
    """Attention of the picture over the words of its description."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.mix = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def keys(self, words):
        return self.k(words).unflatten(-1, (self.heads, -1)).transpose(1, 2), \
            self.v(words).unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, words=None, keys=None):
        k, v = keys or self.keys(words)
        q = self.q(self.norm(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mix(x)


class Denoiser(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers, self.time = nn.ModuleList([CrossLayer(width, 4) for _ in range(layers)]), nn.Embedding(1000, width)

    def forward(self, x, at, words=None, kept=None):
        x = x + self.time(at)
        for number, layer in enumerate(self.layers):
            x = layer(x, words, kept[number] if kept else None)
        return x


@recorded(shapes=False)
@pair
def guidance_in_two_calls(s, good):
    """Guided sampling of one small picture runs the model with the words, then without them, in 10 steps."""
    width = s.pick(512, 64)
    model = Denoiser(width, 6).to(s.device)
    noise, words = torch.randn(1, 64, width, device=s.device), torch.randn(1, 77, width, device=s.device)
    nothing, times = torch.zeros_like(words), torch.arange(990, -1, -110, device=s.device)

    @torch.inference_mode()
    def step():
        x = noise
        for at in times:
            with record_function("denoise"):
                if good:
                    told, untold = model(x.expand(2, -1, -1), at, torch.cat([words, nothing])).chunk(2)
                else:
                    told, untold = model(x, at, words), model(x, at, nothing)
                x = x - 0.01 * (untold + 7.5 * (told - untold))
        return x

    return step


@pair
def words_projected_at_each_noise_level(s, good):
    """Keys and values of the same description are computed in each of 8 denoising steps."""
    width, length = s.pick(1024, 64), s.pick(4096, 512)
    model = Denoiser(width, 4).to(s.device)
    noise, words = torch.randn(2, 64, width, device=s.device), torch.randn(2, length, width, device=s.device)
    times = torch.arange(900, -1, -120, device=s.device)

    @torch.inference_mode()
    def step():
        x, kept = noise, [layer.keys(words) for layer in model.layers] if good else None
        for at in times:
            x = x - 0.01 * model(x, at, words, kept)
        return x

    return step


class Encoder(nn.Module):
    def __init__(self, width: int, weights: bool) -> None:
        super().__init__()
        self.attention = nn.ModuleList([nn.MultiheadAttention(width, 8, batch_first=True) for _ in range(3)])
        self.mix, self.weights = nn.ModuleList([nn.Linear(width, width) for _ in range(3)]), weights

    def forward(self, x):
        for attention, mix in zip(self.attention, self.mix):
            x = x + attention(x, x, x, need_weights=self.weights)[0]
            x = x + F.gelu(mix(x))
        return x


@recorded(memory=True)
@pair
def attention_weights_nobody_reads(s, good):
    """nn.MultiheadAttention returns its weights by default, so it writes out all scores; the caller drops them."""
    width = s.pick(512, 64)
    model = Encoder(width, not good).to(s.device)
    x = torch.randn(s.pick(16, 2), s.pick(1024, 128), width, device=s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        with torch.autocast(s.device, torch.bfloat16, enabled=s.device == "cuda"):
            loss = model(x).float().square().mean()
        return update(optimizer, loss)

    return step
