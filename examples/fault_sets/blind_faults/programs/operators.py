"""Faults in the choice or order of operators."""

import torch
import torch.nn.functional as F
from common import adamw, mlp, pair, train
from torch import nn


class Lookup(torch.autograd.Function):
    """Rows of a table. The backward adds the gradients chunk by chunk, or all at once."""

    @staticmethod
    def forward(ctx, table, index, chunks):
        ctx.save_for_backward(index)
        ctx.rows, ctx.chunks = table.shape[0], chunks
        return table[index]

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        total = torch.zeros(ctx.rows, grad.shape[1], dtype=grad.dtype, device=grad.device)
        for part, rows in zip(grad.chunk(ctx.chunks), index.chunk(ctx.chunks)):
            total = total.index_add(0, rows, part)
        return total, None, None


@pair
def slow_custom_backward(s, good):
    """An autograd.Function whose forward is one gather; its backward makes a new table of gradients for each of 32 chunks."""
    width, rows, words = s.pick(512, 16), s.pick(8192, 32), s.pick(16384, 64)
    table = nn.Parameter(torch.randn(words, width, device=s.device))
    index, model = torch.randint(0, words, (rows,), device=s.device), mlp(s, width, 3, 1)
    chunks = 1 if good else s.pick(32, 4)
    return train(model, adamw([table, *model.parameters()]),
                 lambda: model(Lookup.apply(table, index, chunks).bfloat16()).float().square().mean())


@pair
def index_add_contention(s, good):
    """Sums of features per class: index_add_ of 262,144 rows into 8 rows."""
    rows, width, classes = s.pick(262144, 64), s.pick(64, 8), 8
    features = torch.randn(rows, width, device=s.device)
    labels = torch.randint(0, classes, (rows,), device=s.device)
    model, x = mlp(s, s.pick(1024, 16), 2), s.randn(s.pick(2048, 8), s.pick(1024, 16))

    @torch.inference_mode()
    def step():
        if good:
            sums = F.one_hot(labels, classes).float().t() @ features
        else:
            sums = torch.zeros(classes, width, device=s.device).index_add_(0, labels, features)
        return sums, model(x)[0]

    return step


@pair
def transposed_table(s, good):
    """Rows are gathered from a table that is a transposed view: each row's elements are far apart in memory."""
    words, width, rows = s.pick(65536, 64), s.pick(1024, 16), s.pick(16384, 32)
    table = torch.randn(width, words, device=s.device).t()
    table = table.contiguous() if good else table
    index = torch.randint(0, words, (rows,), device=s.device)
    model = mlp(s, width, 2)

    @torch.inference_mode()
    def step():
        return model(table[index].bfloat16())[0]

    return step


@pair
def sort_for_top1(s, good):
    """The best word of each row is taken from a full sort of the logits."""
    width, words, rows = s.pick(1024, 16), s.pick(32000, 64), s.pick(1024, 8)
    model, x = mlp(s, width, 2, words), s.randn(rows, width)

    @torch.inference_mode()
    def step():
        logits = model(x).float()
        return logits.max(dim=-1).values if good else logits.sort(dim=-1, descending=True).values[:, 0]

    return step


@pair
def upsample_before_conv(s, good):
    """A 1x1 convolution runs after a 4x upsampling, on 16 times the pixels that it would need."""
    size, channels = s.pick(64, 8), s.pick(256, 8)
    x = s.randn(8, channels, size, size).contiguous(memory_format=torch.channels_last)
    conv = nn.Conv2d(channels, channels, 1).to(s.device, torch.bfloat16, memory_format=torch.channels_last)
    last = nn.Conv2d(channels, 3, 1).to(s.device, torch.bfloat16, memory_format=torch.channels_last)

    def larger(images):
        return F.interpolate(images, scale_factor=4, mode="bilinear", align_corners=False)

    @torch.inference_mode()
    def step():
        return larger(last(conv(x))) if good else last(conv(larger(x)))

    return step


@pair
def product_by_broadcast(s, good):
    """A batched product is written as a broadcast multiplication and a sum."""
    batch, rows, inner, columns = s.pick(32, 2), s.pick(128, 4), s.pick(256, 8), s.pick(128, 4)
    a, b = s.randn(batch, rows, inner), s.randn(batch, inner, columns)
    model, x = mlp(s, s.pick(1024, 16), 2), s.randn(s.pick(2048, 8), s.pick(1024, 16))

    @torch.inference_mode()
    def step():
        product = torch.bmm(a, b) if good else (a[:, :, :, None] * b[:, None]).sum(dim=2)
        return product, model(x)[0]

    return step


@pair
def pad_before_conv(s, good):
    """Each convolution gets an image that F.pad has copied with its border."""
    size, channels, layers = s.pick(128, 8), s.pick(64, 8), s.pick(6, 2)
    x = s.randn(16, channels, size, size).contiguous(memory_format=torch.channels_last)
    convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1 if good else 0) for _ in range(layers))
    convs.to(s.device, torch.bfloat16, memory_format=torch.channels_last)

    @torch.inference_mode()
    def step():
        h = x
        for conv in convs:
            h = torch.relu_(conv(h if good else F.pad(h, (1, 1, 1, 1))))
        return h

    return step


@pair
def small_inverses(s, good):
    """The 4x4 matrices of 48 cameras are inverted one by one."""
    cameras = s.pick(48, 4)
    poses = torch.eye(4, device=s.device) * 2 + torch.randn(cameras, 4, 4, device=s.device) * 0.1
    points = torch.randn(cameras, s.pick(65536, 16), 4, device=s.device)

    @torch.inference_mode()
    def step():
        if good:
            inverses = torch.linalg.inv_ex(poses).inverse
        else:
            inverses = torch.stack([torch.linalg.inv(pose) for pose in poses])
        return (points @ inverses.transpose(1, 2)).square().mean()

    return step
