"""Twelve more pairs, written when those of inputs.py and training.py had been used to find what the predictions lacked."""

import copy
import random
import zlib

import numpy
import torch
import torch.nn.functional as F
from common import Named, half, pair, recorded, trained, update


@recorded(stacks=True)
@pair
def words_looked_up_in_a_dict(s, good):
    """12,000 words become numbers through a dict, one by one; the good twin indexes an array of them."""
    count, known = s.pick(12_000, 60), 5000
    numbers = {f"word{number}": (number * 7919) % 997 for number in range(known)}
    words = [f"word{(place * 31) % known}" for place in range(count)]
    table = numpy.array([numbers[f"word{number}"] for number in range(known)], dtype=numpy.float32)
    places = numpy.array([(place * 31) % known for place in range(count)])
    model, optimizer = trained(s, s.pick(120, 6), 6)

    def looked_up():
        if good:
            return table[places]
        found = []
        for word in words:
            found.append(numbers.get(word, 0))
        return numpy.array(found, dtype=numpy.float32)

    def step():
        x = torch.from_numpy(looked_up()).to(s.device).reshape(-1, s.pick(120, 6)) / 997
        return update(optimizer, model(x.to(half(s.device))).float().square().mean())

    return step


@pair
def windows_cut_one_by_one(s, good):
    """128 windows of a series on the GPU are cut in a loop and stacked; the good twin unfolds it."""
    count, length, stride = s.pick(128, 4), s.pick(256, 8), s.pick(64, 2)
    series = s.randn((count - 1) * stride + length, dtype=half(s.device))
    model, optimizer = trained(s, length, 6)

    def step():
        if good:
            x = series.unfold(0, length, stride)
        else:
            x = torch.stack([series[number * stride:number * stride + length] for number in range(count)])
        return update(optimizer, model(x).float().square().mean())

    return step


@pair
def norms_logged_one_by_one(s, good):
    """The norm of each gradient is taken by itself and all are stacked; the good twin takes them in one call."""
    rows, width = s.pick(256, 4), s.pick(512, 16)
    model = torch.nn.Sequential(*(Named(width) for _ in range(s.pick(16, 2)))).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, foreach=True)
    weights = list(model.parameters())
    x = s.randn(rows, width, dtype=half(s.device))
    kept = {}

    def step():
        loss = update(optimizer, model(x).float().square().mean())
        gradients = [weight.grad.detach() for weight in weights]
        kept["norms"] = torch.stack(torch._foreach_norm(gradients) if good else [each.norm() for each in gradients])
        return loss

    return step


@recorded(stacks=True)
@pair
def settings_copied_deeply(s, good):
    """The settings, nested dicts of 1200 values, are copied with deepcopy for each step."""
    rows, width = s.pick(256, 4), s.pick(1024, 16)
    settings = {f"part{part}": {f"value{number}": [number, {"scale": 1.0}] for number in range(s.pick(40, 2))} for part in range(30)}
    model, optimizer = trained(s, width, 6)
    x = s.randn(rows, width, dtype=half(s.device))

    def step():
        own = settings if good else copy.deepcopy(settings)
        loss = model(x).float().square().mean() * own["part0"]["value0"][1]["scale"]
        return update(optimizer, loss)

    return step


@pair
def rows_padded_one_by_one(s, good):
    """96 sequences on the CPU are padded and masked one by one; the good twin writes them into one tensor through flat indices."""
    count, longest = s.pick(96, 4), s.pick(128, 8)
    lengths = [longest // 2 + (number * 13) % (longest // 2) for number in range(count)]
    sequences = [torch.rand(length) for length in lengths]
    flat = torch.cat(sequences)
    places = torch.cat([torch.arange(length) + number * longest for number, length in enumerate(lengths)])
    model, optimizer = trained(s, longest, 6)

    def padded():
        if good:
            x = torch.zeros(count * longest).index_copy_(0, places, flat)
            return x.view(count, longest)
        return torch.stack([F.pad(each, (0, longest - each.numel())) for each in sequences])

    def step():
        x = padded().to(s.device, half(s.device))
        return update(optimizer, model(x).float().square().mean())

    return step


@pair
def heads_in_a_loop(s, good):
    """32 heads of one input are 32 products; the good twin computes them as one and splits the result."""
    rows, width, heads = s.pick(64, 4), s.pick(256, 16), s.pick(32, 2)
    x = s.randn(rows, width, dtype=half(s.device))
    weights = s.randn(heads, 16, width, dtype=half(s.device))
    parts = list(weights)
    whole = weights.reshape(-1, width)
    rest = torch.nn.Sequential(*(Named(heads * 16) for _ in range(4))).to(s.device, half(s.device))

    @torch.no_grad()
    def step():
        y = F.linear(x, whole) if good else torch.cat([F.linear(x, part) for part in parts], dim=1)
        return rest(torch.tanh(y)).float().mean()

    return step


@pair
def numbers_drawn_one_by_one(s, good):
    """4,096 random numbers are drawn in Python and made a tensor; the good twin draws them on the GPU."""
    rows, width = s.pick(32, 2), s.pick(128, 8)
    model, optimizer = trained(s, width, 6)

    def step():
        if good:
            x = torch.rand(rows, width, device=s.device)
        else:
            x = torch.tensor([random.random() for _ in range(rows * width)]).view(rows, width).to(s.device)
        optimizer.zero_grad()
        loss = model(x.to(half(s.device))).float().square().mean()
        loss.backward()
        optimizer.step()
        return None  # the numbers differ between the twins

    return step


class Packed(torch.utils.data.Dataset):
    """Samples that are kept compressed."""

    def __init__(self, size: int, good: bool) -> None:
        values = numpy.arange(size, dtype=numpy.float32) % 17
        self.packed = [zlib.compress((values * (number + 1)).tobytes()) for number in range(64)]
        self.ready = [torch.frombuffer(bytearray(zlib.decompress(each)), dtype=torch.float32) for each in self.packed] if good else None

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if self.ready:
            return self.ready[index % 64]
        return torch.frombuffer(bytearray(zlib.decompress(self.packed[index % 64])), dtype=torch.float32)


@pair
def samples_unpacked_each_time(s, good):
    """The loader of the training process decompresses each sample each time; the good twin keeps the 64 samples unpacked."""
    size = s.pick(16384, 64)
    batches = iter(torch.utils.data.DataLoader(Packed(size, good), batch_size=s.pick(48, 2), num_workers=0))
    model, optimizer = trained(s, size, 6)

    def step():
        x = next(batches).to(s.device, half(s.device)) / 1000
        return update(optimizer, model(x).float().square().mean())

    return step


@pair
def tokens_launched_one_by_one(s, good):
    """Eight tokens through six small layers, launched call by call; the good twin replays a CUDA graph of all eight."""
    width = s.pick(512, 16)
    layers = torch.nn.Sequential(*(Named(width) for _ in range(s.pick(6, 2)))).to(s.device, half(s.device))
    x = s.randn(4, width, dtype=half(s.device))

    @torch.no_grad()
    def tokens():
        y = x
        for _ in range(8):
            y = torch.tanh(layers(y))
        return y

    if not good or s.device != "cuda":
        return tokens
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            tokens()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = tokens()
    kept = (layers, x)  # the graph reads their memory

    def step():
        graph.replay()
        return y if kept else None

    return step


@pair
def cache_emptied_after_each_part(s, good):
    """The caching allocator is emptied after forward, after backward and after the optimizer."""
    rows, width = s.pick(2048, 4), s.pick(1024, 16)
    model, optimizer = trained(s, width, 4)
    x = s.randn(rows, width, dtype=half(s.device))

    def emptied():
        if not good and s.device == "cuda":
            torch.cuda.empty_cache()

    def step():
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        emptied()
        loss.backward()
        emptied()
        optimizer.step()
        emptied()
        return loss.detach()

    return step


@pair
def layers_checked_for_nan(s, good):
    """After each of 16 layers the output is checked for NaN on the CPU; the good twin checks the last one alone."""
    rows, width, count = s.pick(256, 4), s.pick(512, 16), s.pick(16, 2)
    layers = torch.nn.ModuleList(Named(width) for _ in range(count)).to(s.device, half(s.device))
    x = s.randn(rows, width, dtype=half(s.device))

    @torch.no_grad()
    def step():
        y = x
        for number, layer in enumerate(layers):
            y = layer(y)
            if (not good or number + 1 == count) and bool(torch.isnan(y).any()):
                raise ValueError(f"NaN after layer {number}")
        return y

    return step


@recorded(apart=True)
@pair
def layers_compiled_one_by_one(s, good):
    """Each of 12 layers is compiled by itself; the good twin compiles the whole."""
    rows, width = s.pick(64, 4), s.pick(256, 16)
    layers = [Named(width) for _ in range(s.pick(12, 2))]
    model = torch.nn.Sequential(*layers).to(s.device, half(s.device))
    x = s.randn(rows, width, dtype=half(s.device))
    run = s.compile(model) if good else torch.nn.Sequential(*(s.compile(layer) for layer in layers))

    @torch.no_grad()
    def step():
        return run(x)

    return step
