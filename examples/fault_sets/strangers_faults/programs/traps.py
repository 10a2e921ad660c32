"""Programs that look faulty and are not. The docstring says what must not be said."""

import torch
import torch.nn.functional as F
from common import half, recorded, trap, tower, update
from torch import nn
from vision import conv_norm, on_device, pictures


@trap
def adversarial_images(s, good):
    """Training on images that were changed to fool the network. Not: the images' gradient is needless, the pass is repeated."""
    count, width = s.pick(128, 4), s.pick(64, 16)
    model = on_device(s, nn.Sequential(*conv_norm(3, width, 5, 2), *conv_norm(width, width, 3, 2), *conv_norm(width, width, 3),
                                       nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)))
    images, labels = pictures(s, count, 3, s.pick(224, 32)), torch.randint(0, 100, (count,), device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        x = images.clone().requires_grad_()
        slope, = torch.autograd.grad(F.cross_entropy(model(x).float(), labels), x)
        worse = (images + 0.01 * slope.sign()).detach()
        return update(optimizer, F.cross_entropy(model(worse).float(), labels))

    return step


@recorded(stacks=True)
@trap
def confidence_and_class(s, good):
    """Segmentation with a class and a confidence for each pixel. Not: the softmax before argmax is needless."""
    classes, width = s.pick(64, 8), s.pick(128, 16)
    head = on_device(s, nn.Sequential(*conv_norm(width, width, 3), nn.Conv2d(width, classes, 1))).eval()
    features = pictures(s, s.pick(4, 2), width, s.pick(256, 16))

    @torch.inference_mode()
    def step():
        confidence, chosen = head(features).softmax(dim=1).max(dim=1)
        return torch.stack([confidence.float().mean(), chosen.float().mean()])

    return step


@trap
def channels_last_already(s, good):
    """Convolutions in channels_last and bfloat16, with widths of whole tiles. Not: change layout or number type."""
    count, width = s.pick(128, 2), s.pick(128, 16)
    layers = [part for _ in range(4) for part in conv_norm(width, width, 3)]
    model = on_device(s, nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 128)))
    images, labels = pictures(s, count, width, s.pick(56, 16)), torch.randint(0, 128, (count,), device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        return update(optimizer, F.cross_entropy(model(images).float(), labels))

    return step


@trap
def weights_cast_once(s, good):
    """Mixed precision by autocast. Each weight is cast once a step, as must be. Not: cast less often, use the cache."""
    width, rows = s.pick(2048, 64), s.pick(16_384, 64)
    model = tower(width, width, 5, width).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=s.device == "cuda")
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        with torch.autocast(s.device, torch.bfloat16):
            loss = model(x).float().square().mean()
        return update(optimizer, loss)

    return step
