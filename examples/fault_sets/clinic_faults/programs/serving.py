"""Language models that are served: drafts, samplers, adapters, pages of keys and values."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded
from torch import nn
from torch.profiler import record_function


class CachedBlock(nn.Module):
    """A layer that attends to the keys and values before its tokens, and writes down those of its tokens."""

    def __init__(self, width, heads, rows, room):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width, bias=False), nn.SiLU(), nn.Linear(4 * width, width, bias=False))
        self.register_buffer("cache", 0.1 * torch.randn(2, rows, heads, room, width // heads))

    def forward(self, x, at):
        """x: tokens at positions at and after."""
        count = x.shape[1]
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        self.cache[0, :, :, at:at + count] = k
        self.cache[1, :, :, at:at + count] = v
        keys, values = self.cache[:, :, :, :at + count]
        seen = torch.ones(count, at + count, dtype=torch.bool, device=x.device).tril(at) if count > 1 else None
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm(x))


@recorded(stacks=True, active=3)
@pair
def drafts_verified_one_by_one(s, good):
    """Speculative decoding. A small model drafted 8 tokens for each of 4 requests, and the large one says how probable they are."""
    width, heads, words, drafted, before = s.pick(4096, 64), s.pick(32, 2), s.pick(32_000, 100), 8, s.pick(512, 16)
    with torch.device(s.device):
        embed, head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        blocks = nn.ModuleList([CachedBlock(width, heads, 4, before + drafted) for _ in range(s.pick(4, 2))])
    nn.ModuleList([embed, head, blocks]).to(s.device, half(s.device)).eval()
    draft = torch.randint(0, words, (4, drafted), device=s.device)

    def target(tokens, at):
        x = embed(tokens)
        for block in blocks:
            x = block(x, before + at)
        return head(x)

    def verify():
        if good:
            return target(draft, 0)
        scores = []
        for at in range(drafted):
            scores.append(target(draft[:, at:at + 1], at)[:, -1])
        return torch.stack(scores, dim=1)

    @torch.inference_mode()
    def step():
        with record_function("verify"):
            scores = verify().float()
        likely = scores.log_softmax(-1)[:, :-1].gather(-1, draft[:, 1:, None]).squeeze(-1)
        accepted = (likely.exp() > 1e-9).int().cumprod(dim=1).sum(dim=1)
        return scores.logsumexp(-1).mean(dim=0), accepted.float()

    return step


class TopK:
    """Leaves the most probable candidates."""

    def __init__(self, count):
        self.count = count

    def __call__(self, scores):
        least = scores.sort(dim=-1, descending=True).values[:, self.count - 1:self.count]
        return scores.masked_fill(scores < least, float("-inf"))


class TopP:
    """Leaves the most probable candidates that make up a share together."""

    def __init__(self, share):
        self.share = share

    def __call__(self, scores):
        ordered, order = scores.sort(dim=-1, descending=True)
        likely = ordered.softmax(dim=-1)
        late = likely.cumsum(dim=-1) - likely > self.share
        return scores.masked_fill(torch.zeros_like(late).scatter(-1, order, late), float("-inf"))


class Typical:
    """Leaves the candidates whose surprise is closest to what is expected."""

    def __init__(self, share):
        self.share = share

    def __call__(self, scores):
        logs = scores.log_softmax(dim=-1)
        expected = -(logs.exp() * logs).nansum(dim=-1, keepdim=True)
        order = (-logs - expected).abs().sort(dim=-1).indices
        likely = logs.exp().gather(-1, order)
        late = likely.cumsum(dim=-1) - likely > self.share
        return scores.masked_fill(torch.zeros_like(late).scatter(-1, order, late), float("-inf"))


@recorded(stacks=True)
@pair
def each_processor_sorts(s, good):
    """The next tokens of 32 requests. The sampler has a list of processors, as those of libraries have."""
    width, rows, words, count = s.pick(2048, 16), s.pick(32, 2), s.pick(128_000, 500), s.pick(100, 20)
    with torch.device(s.device):
        body = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)).to(half(s.device)).eval()
        head = nn.Linear(width, words, bias=False).to(half(s.device))
    hidden = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    bias = 0.1 * torch.randn(words, device=s.device)
    processors = [TopK(count), TopP(0.95), Typical(0.9)]

    @torch.inference_mode()
    def step():
        scores = 4 * head(body(hidden) + hidden).float() + bias
        with record_function("sampler"):
            if good:
                scores = scores.topk(count, dim=-1).values
            for processor in processors[1:] if good else processors:
                scores = processor(scores)
            return scores.softmax(dim=-1).square().sum(dim=-1)

    return step


class LoraLinear(nn.Module):
    """A shared weight and one of many small adapters for each request."""

    def __init__(self, width, adapters, rank, good):
        super().__init__()
        self.good, self.base = good, nn.Linear(width, width, bias=False)
        self.down = nn.Parameter(torch.randn(adapters, width, rank) / width ** 0.5)
        self.up = nn.Parameter(torch.randn(adapters, rank, width) / rank)

    def forward(self, x, chosen, on_device):
        y = self.base(x)
        if self.good:
            return torch.baddbmm(y[:, None], torch.bmm(x[:, None], self.down[on_device]), self.up[on_device]).squeeze(1)
        for number, adapter in enumerate(chosen):
            down = x[number] @ self.down[adapter]
            y[number] += down @ self.up[adapter]
        return y


@recorded(stacks=True, active=4)
@pair
def adapter_for_each_request(s, good):
    """One model serves many customers, each of whom has an adapter of rank 16. 48 requests of them are decoded together."""
    width, requests, adapters = s.pick(2048, 32), s.pick(48, 6), s.pick(64, 4)
    layers = nn.ModuleList([LoraLinear(width, adapters, s.pick(16, 2), good) for _ in range(2)]).to(s.device, half(s.device))
    chosen = torch.randint(0, adapters, (requests,)).tolist()
    on_device = torch.tensor(chosen, device=s.device)
    x = torch.randn(requests, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        h = x
        for layer in layers:
            h = F.silu(layer(h, chosen, on_device))
        return h.float().mean(dim=1)

    return step


PAGE = 16


@recorded(stacks=True)
@pair
def slots_listed_in_python(s, good):
    """Prefill of 32 prompts of 512 tokens. Keys and values of each token go to a slot of a page of the pool."""
    requests, tokens, width, layers = s.pick(32, 2), s.pick(512, 32), s.pick(1024, 32), 4
    pages = tokens // PAGE
    tables = torch.randperm(requests * pages).view(requests, pages)
    listed, on_device = tables.tolist(), tables.to(s.device)
    pool = torch.zeros(layers, 2, requests * tokens, width, device=s.device, dtype=half(s.device))
    project = nn.ModuleList([nn.Linear(width, 2 * width) for _ in range(layers)]).to(s.device, half(s.device)).eval()
    x = torch.randn(requests * tokens, width, device=s.device, dtype=half(s.device))
    spans = [(0, tokens)] * requests

    def listed_slots():
        slots = []
        for table, (begin, end) in zip(listed, spans):
            slots += [table[at // PAGE] * PAGE + at % PAGE for at in range(begin, end)]
        return torch.tensor(slots, device=s.device)

    def computed_slots():
        at = torch.arange(tokens, device=s.device)
        return (on_device[:, at // PAGE] * PAGE + at % PAGE).flatten()

    @torch.inference_mode()
    def step():
        with record_function("slot_mapping"):
            slots = computed_slots() if good else listed_slots()
        h = x
        for number, layer in enumerate(project):
            keys, values = layer(h).chunk(2, dim=-1)
            pool[number, 0].index_copy_(0, slots, keys)
            pool[number, 1].index_copy_(0, slots, values)
            h = F.silu(keys) * values
        return pool[:, :, 0].float().mean(dim=-1)

    return step


class Detokeniser:
    """Turns the tokens of requests into text that is sent as it grows."""

    def __init__(self, vocabulary, good):
        self.vocabulary, self.kept = vocabulary, 6 if good else 0

    def detokenise(self, tokens):
        """What the last token adds to the text."""
        vocabulary = self.vocabulary
        before = tokens[-self.kept:-1] if self.kept else tokens[:-1]
        tokens = tokens[-self.kept:]
        text = "".join([vocabulary[token] for token in tokens])
        return text[len("".join([vocabulary[token] for token in before])):]


@recorded(stacks=True)
@pair
def text_detokenised_from_start(s, good):
    """64 requests are decoded, and the text of each new token is streamed. They have 1500 tokens already."""
    width, words, rows, said = s.pick(2048, 32), s.pick(32_000, 100), s.pick(64, 4), s.pick(1500, 50)
    with torch.device(s.device):
        body = nn.Sequential(*[nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
                               for _ in range(s.pick(8, 2))]).to(half(s.device)).eval()
        head = nn.Linear(width, words).to(half(s.device))
    hidden = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    stream = Detokeniser(["w%d " % number for number in range(words)], good)
    history = torch.randint(0, words, (rows, said)).tolist()

    @torch.inference_mode()
    def step():
        chosen = head(body(hidden)).argmax(dim=-1).tolist()
        with record_function("detokenise"):
            sent = [stream.detokenise([*tokens, token]) for tokens, token in zip(history, chosen)]
        return float(sum(map(len, sent)))

    return step


class PagedCache:
    """Keys and values of all requests, in slots. Ported from a program whose arrays cannot change."""

    def __init__(self, s, layers, slots, width, good):
        self.good = good
        self.pools = [torch.zeros(slots, width, device=s.device, dtype=half(s.device)) for _ in range(2 * layers)]

    def write(self, number, slots, new):
        pool = self.pools[number]
        self.pools[number] = pool.index_copy_(0, slots, new) if self.good else pool.index_copy(0, slots, new)


@recorded(stacks=True)
@pair
def pool_copied_to_write_few_rows(s, good):
    """Decoding of 64 requests in four layers, whose keys and values are written to the pool."""
    layers, slots, width, rows = 4, s.pick(131_072, 256), s.pick(1024, 32), s.pick(64, 4)
    cache = PagedCache(s, layers, slots, width, good)
    project = nn.ModuleList([nn.Linear(width, 2 * width) for _ in range(layers)]).to(s.device, half(s.device)).eval()
    chosen = torch.randperm(slots)[:rows].to(s.device)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        h = x
        for number, layer in enumerate(project):
            keys, values = layer(h).chunk(2, dim=-1)
            cache.write(2 * number, chosen, keys)
            cache.write(2 * number + 1, chosen, values)
            h = h + F.silu(keys) * cache.pools[2 * number + 1][chosen]
        return h.float().mean(dim=-1)

    return step
