"""Language models: packing, experts, grammars, caches, a log."""

import logging

import torch
import torch.nn.functional as F
from common import half, pair, recorded, update
from torch import nn
from torch.profiler import record_function


class Reader(nn.Module):
    """Attention and a small network, a few times."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.into = nn.ModuleList([nn.Linear(width, 3 * width, bias=False) for _ in range(layers)])
        self.out = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(layers)])

    def forward(self, x, mask):
        rows, length, width = x.shape
        for into, out in zip(self.into, self.out):
            q, k, v = into(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + out(mixed.transpose(1, 2).reshape(rows, length, width))
        return x


@recorded(stacks=True)
@pair
def mask_sent_whole(s, good):
    """Several documents are packed into each row. A token reads those before it of its own document."""
    rows, length, width = s.pick(8, 2), s.pick(2048, 16), s.pick(512, 16)
    reader = Reader(width, s.pick(8, 2), 2).to(s.device, half(s.device)).eval()
    x = torch.randn(rows, length, width, device=s.device, dtype=half(s.device))
    document = torch.arange(length).div(length // 4, rounding_mode="floor").repeat(rows, 1)

    def mask_of(document):
        same = document[:, None, :, None] == document[:, None, None, :]
        return torch.where(same.tril(), 0.0, float("-inf")).to(half(s.device))

    sent = s.pinned(document) if good else s.pinned(mask_of(document))

    @torch.inference_mode()
    def step():
        with record_function("inputs"):
            here = sent.to(s.device, non_blocking=True)
            mask = mask_of(here) if good else here
        return reader(x, mask).float().mean(dim=(1, 2))

    return step


@recorded(stacks=True, active=3)
@pair
def routes_read_from_the_gpu(s, good):
    """Ten layers of experts. The hash of a token chooses its expert, in each layer alike."""
    experts, width, tokens = s.pick(16, 4), s.pick(2048, 16), s.pick(4096, 32)
    with torch.device(s.device):
        layers = [[torch.randn(width, width, dtype=half(s.device)) / width ** 0.5 for _ in range(experts)] for _ in range(10)]
    x = torch.randn(tokens, width, device=s.device, dtype=half(s.device))
    words = torch.randint(0, 50_000, (tokens,))
    on_gpu = words.to(s.device)

    def routes(words):
        expert = words * 2_654_435_761 % 2 ** 32 % experts
        return expert.argsort(), torch.bincount(expert, minlength=experts).tolist()

    known, known_counts = routes(words)  # the loader sends them along with the words
    known = s.pinned(known)

    @torch.inference_mode()
    def step():
        h = x
        if good:
            order, counts = known.to(s.device, non_blocking=True), known_counts
        for layer in layers:
            if not good:
                with record_function("route"):
                    order, counts = routes(on_gpu)
            parts = h.index_select(0, order).split(counts)
            made = torch.cat([part @ weight for part, weight in zip(parts, layer)])
            h = h.index_add(0, order, F.silu(made))
        return h.float().mean(dim=1)

    return step


@recorded(stacks=True, active=3)
@pair
def grammar_mask_in_python(s, good):
    """Answers must follow a grammar: the state of each of four answers says which words may come next."""
    rows, width, words, states = s.pick(4, 2), s.pick(4096, 16), s.pick(32_000, 50), 12
    with torch.device(s.device):
        model = nn.Sequential(*[nn.Linear(width, width) for _ in range(12)], nn.Linear(width, words)).to(half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    allowed = [frozenset(range(state, words, 3 + state)) for state in range(states)]
    state_of = list(range(rows))

    def forbidden(state):
        may = allowed[state]
        return torch.tensor([word not in may for word in range(words)])

    kept = torch.stack([forbidden(state) for state in range(states)]).to(s.device)

    @torch.inference_mode()
    def step():
        with record_function("grammar"):
            if good:
                mask = kept[torch.tensor(state_of, device=s.device)]
            else:
                mask = torch.stack([forbidden(state) for state in state_of]).to(s.device)
        tokens = model(x).float().masked_fill(mask, float("-inf")).argmax(dim=1).tolist()
        for row, token in enumerate(tokens):
            state_of[row] = (state_of[row] + token) % states
        return tokens

    return step


@recorded(stacks=True)
@pair
def cache_cleared_for_each_batch(s, good):
    """A batch of prompts is read, and a token is written. The cache has room for long answers."""
    rows, room, prompt, heads, size = s.pick(16, 2), s.pick(8192, 32), s.pick(1024, 4), s.pick(8, 2), s.pick(128, 8)
    width = heads * size
    with torch.device(s.device):
        layers = nn.ModuleList([nn.Linear(width, 3 * width, bias=False) for _ in range(8)]).to(half(s.device)).eval()
    prompts = torch.randn(rows, prompt, width, device=s.device, dtype=half(s.device))
    new = torch.empty if good else torch.zeros

    def read(x, caches, at):
        for layer, cache in zip(layers, caches):
            q, k, v = layer(x).view(rows, -1, 3, heads, size).permute(2, 0, 3, 1, 4)
            end = at + x.shape[1]
            cache[0][:, :, at:end], cache[1][:, :, at:end] = k, v
            mixed = F.scaled_dot_product_attention(q, cache[0][:, :, :end], cache[1][:, :, :end], is_causal=at == 0)
            x = x + mixed.transpose(1, 2).reshape(x.shape)
        return x

    @torch.inference_mode()
    def step():
        with record_function("new_cache"):
            caches = [[new(rows, heads, room, size, dtype=half(s.device), device=s.device) for _ in range(2)] for _ in layers]
        x = read(prompts, caches, 0)[:, -1:]
        return read(x, caches, prompt).float().mean(dim=(1, 2))

    return step


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.0))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


@recorded(stacks=True, active=3)
@pair
def message_formatted_for_nobody(s, good):
    """Training with a log. Messages for debugging are switched off."""
    log = logging.getLogger("studio")
    log.setLevel(logging.WARNING)
    width = s.pick(512, 16)
    model = nn.Sequential(*[Block(width) for _ in range(s.pick(32, 2))]).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    x = torch.randn(s.pick(512, 4), width, device=s.device, dtype=half(s.device))

    def step():
        if good:
            log.debug("before the step: %s", model)
        else:
            log.debug(f"before the step: {model}")
        return float(update(optimizer, model(x).float().square().mean()))

    return step


@recorded(stacks=True)
@pair
def gradients_averaged_over_one_rank(s, good):
    """A loop that was written for several ranks runs with one. Gradients are put into a bucket, averaged, and taken out."""
    width, ranks = s.pick(4096, 16), 1
    model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(12)]).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    x = torch.randn(s.pick(256, 4), width, device=s.device, dtype=half(s.device))

    def average(gradients):
        if good and ranks == 1:
            return
        bucket = torch.cat([gradient.flatten() for gradient in gradients])
        bucket /= ranks
        at = 0
        for gradient in gradients:
            gradient.copy_(bucket[at:at + gradient.numel()].view_as(gradient))
            at += gradient.numel()

    def step():
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        with record_function("average"):
            average([weight.grad for weight in model.parameters()])
        optimizer.step()
        return loss.detach()

    return step
