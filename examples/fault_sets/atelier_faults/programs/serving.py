"""Servers: answers, pruned weights, encoders, graphs, queues of requests, searches."""

import heapq
import queue
import time

import torch
import torch.nn.functional as F
from common import captured, half, pair, recorded, tower
from torch import nn
from torch.nn.utils import prune
from torch.profiler import record_function


class Decoder(nn.Module):
    """One token for each row, with caches of keys and values."""

    def __init__(self, rows, heads, size, room, layers, words, device):
        super().__init__()
        width, self.heads, self.size, dtype = heads * size, heads, size, half(device)
        self.embed = nn.Embedding(words, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        self.to(device, dtype)
        self.caches = [torch.randn(2, rows, heads, room, size, device=device, dtype=dtype) for _ in range(layers)]

    def keep(self, rows):
        """Goes on with these rows only."""
        self.caches = [cache[:, rows].contiguous() for cache in self.caches]

    def forward(self, tokens, position):
        h = self.embed(tokens)
        for qkv, out, cache in zip(self.qkv, self.out, self.caches):
            q, new = qkv(h).view(len(h), 3, self.heads, self.size).split([1, 2], dim=1)
            cache[:, :, :, position] = new.transpose(0, 1)
            keys, values = cache[:, :, :, :position + 1]
            h = h + out(F.scaled_dot_product_attention(q.transpose(1, 2), keys, values).flatten(1))
        return self.head(h)


@recorded(stacks=True)
@pair
def ended_answers_stay_in_batch(s, good):
    """64 answers were begun together. 56 have ended; the others go on."""
    rows, heads, size, room, words = 64, s.pick(16, 2), s.pick(64, 8), s.pick(8192, 64), s.pick(32_000, 100)
    model = Decoder(rows, heads, size, room, 2, words, s.device).eval()
    ended = (torch.arange(rows, device=s.device) % 8) != 3
    tokens = torch.randint(0, words, (rows,), device=s.device)
    still = (~ended).nonzero()[:, 0]
    if good:
        model.keep(still)
        tokens = tokens[still]
    position = room - 1

    @torch.inference_mode()
    def step():
        with record_function("decode"):
            following = model(tokens, position).argmax(dim=-1)
        if not good:
            following = torch.where(ended, 0, following)
        return following.float().sum()

    return step


@recorded(stacks=True)
@pair
def pruning_masks_applied_while_serving(s, good):
    """A network was pruned by half with torch.nn.utils.prune. It answers small batches."""
    width, rows, layers = s.pick(8192, 32), s.pick(16, 2), 8
    with torch.device(s.device):
        model = nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())])
    model.to(half(s.device)).requires_grad_(False).eval()
    for layer in model[::2]:
        prune.custom_from_mask(layer, "weight", layer.weight.abs() > 0.5 / width ** 0.5)
        if good:
            prune.remove(layer, "weight")
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.no_grad()
    def step():
        return model(x).float().mean(dim=1)

    return step


class Block(nn.Module):
    """A layer of an encoder."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.kept, self.mask = heads, None, None
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def kept_mask(self, padding, texts):
        if self.kept is None or not (torch.equal(self.kept[0], padding) and torch.equal(self.kept[1], texts)):
            self.kept, self.mask = (padding, texts), mask_of(padding, texts)
        return self.mask

    def forward(self, x, padding, texts, mask=None):
        mask = self.kept_mask(padding, texts) if mask is None else mask
        rows, length, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


def mask_of(padding, texts):
    """Who sees whom: all of the same text, without padding."""
    return (texts[:, None, :, None] == texts[:, None, None, :]) & ~padding[:, None, None, :]


@recorded(stacks=True, active=4)
@pair
def mask_compared_in_each_layer(s, good):
    """An encoder of texts, two in each row. The mask of attention is the same in all 24 layers."""
    rows, length, width, heads = s.pick(4, 2), s.pick(512, 8), s.pick(1024, 16), s.pick(16, 2)
    blocks = nn.ModuleList(Block(width, heads) for _ in range(24)).to(s.device, half(s.device)).eval()
    x = torch.randn(rows, length, width, device=s.device, dtype=half(s.device))
    lengths = torch.arange(rows, device=s.device) + length - rows
    places = torch.arange(length, device=s.device)
    padding, texts = places >= lengths[:, None], (places >= length // 2).int().expand(rows, length).contiguous()

    @torch.inference_mode()
    def step():
        h, mask = x, mask_of(padding, texts) if good else None
        for block in blocks:
            h = block(h, padding, texts, mask)
        return h.float().mean(dim=(1, 2))

    return step


@recorded(stacks=True, active=4)
@pair
def graph_of_its_own_for_each_layer(s, good):
    """A deep, narrow network answers eight requests at a time. It is captured in CUDA graphs."""
    width, rows, layers = s.pick(512, 16), 8, s.pick(96, 6)
    model = [nn.Sequential(nn.Linear(width, width), nn.ReLU()).to(s.device, half(s.device)).eval() for _ in range(layers)]
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    stream = torch.cuda.Stream() if s.device == "cuda" else None
    with torch.inference_mode():
        if good:
            replays = [captured(s, lambda: nn.Sequential(*model)(x), stream)]
        else:
            replays, h = [], x
            for layer in model:
                replays.append(captured(s, lambda layer=layer, h=h: layer(h), stream))
                h = replays[-1]()

    @torch.inference_mode()
    def step():
        with record_function("replay"):
            for replay in replays:
                answer = replay()
        return answer.float().sum(dim=1)

    return step


class Request:
    def __init__(self, number):
        self.number, self.urgent = number, number % 7 == 0
        self.arrived = (number * 7919) % 100_003

    def __lt__(self, other):
        return self.key() < other.key()

    def key(self):
        return not self.urgent, self.arrived, self.number


@recorded(stacks=True, active=2)
@pair
def waiting_requests_sorted_each_token(s, good):
    """Twenty thousand requests wait. At each token a few places become free and go to the most urgent ones."""
    count, free, width, words = s.pick(20_000, 100), 4, s.pick(2048, 16), s.pick(32_000, 50)
    waiting, arrived = [Request(number) for number in range(count)], [count]
    heapq.heapify(waiting)
    model = tower(width, width, 4, words).to(s.device, half(s.device)).eval()
    running = torch.randn(256, width, device=s.device, dtype=half(s.device))
    rows = torch.arange(free, device=s.device)

    def schedule():
        for _ in range(free):
            request = Request(arrived[0])
            arrived[0] += 1
            if good:
                heapq.heappush(waiting, request)
            else:
                waiting.append(request)
        if good:
            return [heapq.heappop(waiting) for _ in range(free)]
        waiting.sort(key=lambda request: (not request.urgent, request.arrived, request.number))
        chosen = waiting[:free]
        del waiting[:free]
        return chosen

    @torch.inference_mode()
    def step():
        with record_function("schedule"):
            chosen = schedule()
        with record_function("decode"):
            running[rows] = running[rows] * 0.5
            tokens = model(running).argmax(dim=-1).tolist()
        return sum(request.number for request in chosen) + tokens[0] * 0

    return step


@recorded(stacks=True)
@pair
def batch_window_waited_out(s, good):
    """A server collects up to 16 requests, but waits no longer than 4 ms for them. All 16 are there."""
    limit, window, width = 16, 0.004, s.pick(2048, 16)
    inbox, texts = queue.Queue(), torch.randn(limit, width)
    model = tower(width, width, 4, 100).to(s.device, half(s.device)).eval()

    def collect():
        batch, until = [inbox.get()], time.monotonic() + window
        while (left := until - time.monotonic()) > 0:
            if good and len(batch) == limit:
                break
            try:
                batch.append(inbox.get(timeout=left))
            except queue.Empty:
                break
        return batch

    @torch.inference_mode()
    def step():
        for text in texts:
            inbox.put(text)
        x = torch.stack(collect()).to(s.device)
        return float(model(x.to(half(s.device))).float().square().mean())

    return step


@recorded(stacks=True)
@pair
def database_normalised_for_each_query(s, good):
    """Search by cosine: eight questions against two million vectors, which are as they were."""
    count, size, questions = s.pick(2_000_000, 100), s.pick(256, 16), 8
    vectors = torch.randn(count, size, device=s.device, dtype=half(s.device))
    asked = torch.randn(questions, size, device=s.device, dtype=half(s.device))
    if good:
        vectors = F.normalize(vectors, dim=1)

    def cosine(left, right):
        left = F.normalize(left, dim=1)
        right = right if good else F.normalize(right, dim=1)
        return left @ right.T

    @torch.inference_mode()
    def step():
        score, number = cosine(asked, vectors).max(dim=1)
        return score.float()

    return step
