"""Serving and evaluation: prompts, caches, uncertainty, compiled functions, memory."""

import contextlib

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower
from torch import nn
from torch.profiler import record_function


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, cache, begin):
        batch, length, width = x.shape
        q, k, v = self.mixed(self.one(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        end = begin + length
        cache[0][:, :, begin:end], cache[1][:, :, begin:end] = k, v
        seen = torch.arange(end, device=x.device)[None] <= torch.arange(begin, end, device=x.device)[:, None]
        heard = F.scaled_dot_product_attention(q, cache[0][:, :, :end], cache[1][:, :, :end], attn_mask=seen)
        x = x + self.out(heard.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.two(x))))


@recorded(stacks=True, active=3)
@pair
def prompt_read_in_tiny_chunks(s, good):
    """A prompt of 512 tokens goes into the cache, chunk by chunk, to bound the memory; then comes the first token."""
    width, heads, layers, prompt = s.pick(1024, 16), s.pick(16, 2), s.pick(8, 2), s.pick(512, 32)
    chunk = prompt if good else prompt // 16
    blocks = nn.ModuleList(Block(width, heads) for _ in range(layers)).to(s.device, half(s.device)).eval()
    words = nn.Embedding(1000, width).to(s.device, half(s.device))
    caches = torch.zeros(layers, 2, 1, heads, prompt, width // heads, device=s.device, dtype=half(s.device))
    tokens = torch.randint(0, 1000, (1, prompt), device=s.device)

    @torch.inference_mode()
    def step():
        with record_function("prefill"):
            for begin in range(0, prompt, chunk):
                x = words(tokens[:, begin:begin + chunk])
                for block, cache in zip(blocks, caches):
                    x = block(x, cache, begin)
        with record_function("first_token"):
            return (x[:, -1] @ words.weight.t()).argmax(dim=-1).item()

    return step


@recorded(stacks=True)
@pair
def cache_unpacked_whole_each_token(s, good):
    """Keys and values are kept with eight bits and a scale for each token. Each of four layers reads them for one new token."""
    batch, heads, length, depth, layers = s.pick(16, 1), s.pick(16, 2), s.pick(4096, 16), s.pick(128, 8), 4
    kept = [torch.randint(-127, 127, (2, batch, heads, length, depth), device=s.device, dtype=torch.int8) for _ in range(layers)]
    scales = [torch.full((2, batch, heads, length, 1), 0.01, device=s.device, dtype=half(s.device)) for _ in range(layers)]
    if good:
        kept = [numbers.to(half(s.device)) * scale for numbers, scale in zip(kept, scales)]
    project = nn.ModuleList(nn.Linear(heads * depth, heads * depth) for _ in range(layers)).to(s.device, half(s.device))
    x = torch.randn(batch, heads * depth, device=s.device, dtype=half(s.device))

    def keys_and_values(number):
        if good:
            return kept[number]
        return kept[number].to(half(s.device)) * scales[number]

    @torch.inference_mode()
    def step():
        h = x
        for number, layer in enumerate(project):
            with record_function("cache"):
                keys, values = keys_and_values(number)
            with record_function("attend"):
                query = layer(h).view(batch, heads, 1, depth)
                h = h + F.scaled_dot_product_attention(query, keys, values).reshape(batch, -1)
        return h.float().mean()

    return step


class Uncertain(nn.Module):
    """A trunk without chance, and a head with dropout that stays on."""

    def __init__(self, width, classes):
        super().__init__()
        self.trunk = tower(width, width, 6, width)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, classes))

    def forward(self, x):
        return self.head(self.trunk(x))


@recorded(stacks=True)
@pair
def trunk_run_for_each_dropout_sample(s, good):
    """How sure is the model? Dropout stays on in the evaluation, and eight answers are compared."""
    rows, width, classes, samples = s.pick(4096, 8), s.pick(2048, 16), 100, 8
    model = Uncertain(width, classes).to(s.device, half(s.device))
    pictures = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, classes, (rows,), device=s.device)

    @torch.inference_mode()
    def step():
        with record_function("evaluate"):
            if good:
                seen = model.trunk(pictures)
                answers = torch.stack([model.head(seen).float().softmax(dim=1) for _ in range(samples)])
            else:
                answers = torch.stack([model(pictures).float().softmax(dim=1) for _ in range(samples)])
        with record_function("score"):
            doubt = answers.std(dim=0).mean()
            right = (answers.mean(dim=0).argmax(dim=1) == labels).float().mean()
            return (doubt + right).item()

    return step


@recorded(stacks=True)
@pair
def compiled_anew_in_the_step(s, good):
    """A loss is made for each batch, with its own smoothing, and compiled."""
    rows, classes = s.pick(2048, 8), s.pick(1000, 10)
    model = tower(256, s.pick(512, 16), 3, classes).to(s.device, half(s.device))
    x = torch.randn(rows, 256, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, classes, (rows,), device=s.device)

    def loss_for(smoothing):
        def loss(scores, labels):
            chances = scores.float().log_softmax(dim=-1)
            hit = -chances.gather(1, labels[:, None]).squeeze(1)
            return ((1 - smoothing) * hit - smoothing * chances.mean(dim=-1)).mean()

        return s.compile(loss)

    kept = loss_for(0.1)

    @torch.no_grad()
    def step():
        with record_function("scores"):
            scores = model(x)
        with record_function("loss"):
            loss = kept if good else loss_for(0.1)
            return loss(scores, labels).item()

    return step


@recorded(stacks=True)
@pair
def memory_pool_made_for_each_step(s, good):
    """The tensors of a request shall lie apart from those of others, so they have a pool of memory."""
    rows, width = s.pick(8192, 8), s.pick(2048, 16)
    model = tower(width, width, 4, 64).to(s.device, half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    kept = torch.cuda.MemPool() if s.device == "cuda" else None

    def apart():
        if kept is None:
            return contextlib.nullcontext()
        return torch.cuda.use_mem_pool(kept if good else torch.cuda.MemPool())

    @torch.inference_mode()
    def step():
        with record_function("request"), apart():
            return model(x).float().mean().item()

    return step
