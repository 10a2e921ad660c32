"""Serving: requests, prompts, answers."""

import base64
import json
import queue
import threading

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower
from torch import nn


class Block(nn.Module):
    """A causal layer of a transformer. It can be given the keys and values of what came before, and gives its own back."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, before=None, mask=None):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if before is not None:
            k, v = torch.cat([before[0], k], dim=2), torch.cat([before[1], v], dim=2)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x)), (k, v)


class Model(nn.Module):
    def __init__(self, width, layers, words):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.blocks = nn.ModuleList([Block(width, width // 64 or 1) for _ in range(layers)])

    def forward(self, words, cache=None):
        x, kept, mask = self.words(words), [], None
        if cache:
            new, old = words.shape[1], cache[0][0].shape[2]
            mask = torch.ones(new, old + new, dtype=torch.bool, device=words.device).tril_(old)
        for number, block in enumerate(self.blocks):
            x, keys_and_values = block(x, cache[number] if cache else None, mask)
            kept.append(keys_and_values)
        return self.head(x[:, -1]), kept


@recorded(stacks=True)
@pair
def penalty_token_by_token(s, good):
    """Words that were already said become less likely: the scores of a batch are changed before the next words are chosen."""
    rows, said, words, width = s.pick(4, 2), s.pick(24, 8), s.pick(32_000, 500), s.pick(1024, 64)
    model = tower(width, 2 * width, 6, words).to(s.device, half(s.device)).eval()
    state = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    seen = torch.stack([torch.randperm(words, device=s.device)[:said] for _ in range(rows)])

    def one_by_one(scores):
        for row in range(rows):
            for token in set(seen[row].tolist()):
                if scores[row, token] < 0:
                    scores[row, token] *= 1.2
                else:
                    scores[row, token] /= 1.2

    def at_once(scores):
        of_seen = scores.gather(1, seen)
        scores.scatter_(1, seen, torch.where(of_seen < 0, of_seen * 1.2, of_seen / 1.2))

    @torch.inference_mode()
    def step():
        scores = model(state).float()
        (at_once if good else one_by_one)(scores)
        return scores.softmax(dim=1).max(dim=1).values

    return step


@recorded(stacks=True)
@pair
def system_prompt_read_again(s, good):
    """Short questions to an assistant, each of which begins with the same instructions."""
    width, rows = s.pick(1024, 64), s.pick(8, 2)
    model = Model(width, s.pick(12, 2), 8000).to(s.device, half(s.device)).eval()
    system = torch.randint(0, 8000, (1, s.pick(1024, 48)), device=s.device)
    questions = [torch.randint(0, 8000, (rows, s.pick(64, 8)), device=s.device) for _ in range(4)]
    turn = [0]
    with torch.no_grad():
        kept = [tuple(part.expand(rows, -1, -1, -1) for part in layer) for layer in model(system)[1]]

    @torch.inference_mode()
    def step():
        question = questions[turn[0] % 4]
        turn[0] += 1
        if good:
            scores, _ = model(question, kept)
        else:
            scores, _ = model(torch.cat([system.expand(rows, -1), question], dim=1))
        return scores.float().mean(dim=1)

    return step


@recorded(stacks=True)
@pair
def unchanged_inputs_copied_for_graph(s, good):
    """A decoder's step in a CUDA graph. A helper copies all inputs into the graph's buffers, also the keys and values."""
    width, rows, length, layers = s.pick(1024, 64), s.pick(32, 2), s.pick(2048, 32), s.pick(4, 2)
    heads = width // 64
    blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)]).to(s.device, half(s.device)).eval()

    def tensors():
        shapes = [(rows, 1, width)] + [(rows, heads, length, 64)] * (2 * layers)
        return [torch.randn(shape, device=s.device, dtype=half(s.device)) for shape in shapes]

    places, inputs = tensors(), tensors()
    for place, new in zip(places, inputs):
        place.copy_(new)

    @torch.inference_mode()
    def decode():
        x = places[0]
        for number, block in enumerate(blocks):
            q, k, v = block.qkv(block.norms[0](x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            keys, values = places[1 + 2 * number:3 + 2 * number]
            keys[:, :, -1:].copy_(k), values[:, :, -1:].copy_(v)
            mixed = F.scaled_dot_product_attention(q, keys, values)
            x = x + block.out(mixed.transpose(1, 2).flatten(2))
            x = x + block.mlp(block.norms[1](x))
        return x

    graph = None
    if s.device == "cuda":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            decode()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = decode()

    @torch.inference_mode()
    def step():
        for place, new in zip(places[:1] if good else places, inputs):
            place.copy_(new)
        if graph is None:
            return decode().float().mean()
        graph.replay()
        return out.float().mean()

    return step


@recorded(stacks=True)
@pair
def expanded_before_encoder(s, good):
    """A recommender scores 512 candidates for each of 256 users. Both pass through a tower of their own."""
    users, items, width, made = s.pick(256, 4), s.pick(512, 8), s.pick(1024, 32), s.pick(256, 16)
    of_users, of_items = (tower(width, 2 * width, 3, made).to(s.device, half(s.device)).eval() for _ in range(2))
    people = torch.randn(users, width, device=s.device, dtype=half(s.device))
    candidates = torch.randn(1, items, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        person = of_users(people)
        if good:
            vectors = of_items(candidates).expand(users, -1, -1)
        else:
            shown = candidates.expand(users, -1, -1).flatten(0, 1)
            vectors = of_items(shown).view(users, items, made)
        scores = (vectors * person.unsqueeze(1)).float().sum(dim=2)
        return scores.softmax(dim=1).topk(4).values

    return step


@recorded(stacks=True)
@pair
def embeddings_sent_as_json(s, good):
    """A service that turns texts into vectors, and answers with JSON."""
    rows, length, width = s.pick(64, 4), s.pick(128, 8), s.pick(1024, 32)
    blocks = nn.ModuleList([Block(width, width // 64 or 1) for _ in range(s.pick(6, 1))]).to(s.device, half(s.device)).eval()
    words = torch.randn(rows, length, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        x = words
        for block in blocks:
            x, _ = block(x)
        vectors = F.normalize(x.mean(dim=1).float(), dim=1).cpu()
        if good:
            answer = json.dumps({"shape": list(vectors.shape), "vectors": base64.b64encode(vectors.numpy().tobytes()).decode()})
        else:
            answer = json.dumps(vectors.tolist())
        return vectors.square().sum(dim=1) * bool(answer)

    return step


@recorded(stacks=True)
@pair
def stages_in_threads(s, good):
    """A pipeline of twelve stages on one GPU. Each has a thread, which waits for the one before. Requests come one at a time."""
    width, count = s.pick(512, 32), 12
    stages = [tower(width, width, 2, width).to(s.device, half(s.device)).eval() for _ in range(count)]
    queues = [queue.Queue() for _ in range(count + 1)]
    x = torch.randn(s.pick(64, 2), width, device=s.device, dtype=half(s.device))

    def work(stage, inbox, outbox):
        with torch.inference_mode():
            while True:
                request = inbox.get()
                outbox.put(stage(request))

    if not good:
        for stage, inbox, outbox in zip(stages, queues, queues[1:]):
            threading.Thread(target=work, args=(stage, inbox, outbox), daemon=True).start()

    @torch.inference_mode()
    def step():
        if not good:
            queues[0].put(x)
            return queues[-1].get().float().mean(dim=1)
        request = x
        for stage in stages:
            request = stage(request)
        return request.float().mean(dim=1)

    return step
