"""Pictures: classifiers, segmentation, a GAN."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, update
from torch import nn


def conv_norm(inputs, outputs, kernel, stride=1, bias=False):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2)
    if not bias:
        conv.bias = None
    return [conv, nn.BatchNorm2d(outputs), nn.ReLU()]


def on_device(s, model):
    return model.to(s.device, half(s.device), memory_format=torch.channels_last)


def pictures(s, count, channels, side):
    x = torch.randn(count, channels, side, side, device=s.device, dtype=half(s.device))
    return x.to(memory_format=torch.channels_last)


@recorded(stacks=True)
@pair
def input_gradient_left_on(s, good):
    """The images once needed a gradient, for a saliency map. They still require one in training."""
    count, width = s.pick(256, 4), s.pick(64, 16)
    model = nn.Sequential(*conv_norm(3, width, 7, 2), nn.MaxPool2d(2), *conv_norm(width, width, 3), *conv_norm(width, width, 3, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))
    on_device(s, model)
    images = pictures(s, count, 3, s.pick(224, 32)).requires_grad_(not good)
    labels = torch.randint(0, 100, (count,), device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        images.grad = None
        return update(optimizer, F.cross_entropy(model(images).float(), labels))

    return step


@pair
def bias_before_batchnorm(s, good):
    """Pointwise convolutions with a bias, each before a batch norm, which takes the mean away and the bias with it."""
    count, width = s.pick(64, 2), s.pick(64, 16)
    layers = [part for _ in range(8) for part in conv_norm(width, width, 1, bias=not good)]
    model = on_device(s, nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)))
    images, labels = pictures(s, count, width, s.pick(112, 32)), torch.randint(0, 100, (count,), device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        return update(optimizer, F.cross_entropy(model(images).float(), labels))

    return step


@recorded(stacks=True)
@pair
def softmax_before_argmax(s, good):
    """Segmentation: which of 150 classes has a pixel? The scores become probabilities first, which nobody reads."""
    classes, width, side = s.pick(150, 8), s.pick(256, 16), s.pick(128, 16)
    head = on_device(s, nn.Sequential(*conv_norm(width, width, 3), *conv_norm(width, width, 3), nn.Conv2d(width, classes, 1))).eval()
    features = pictures(s, s.pick(4, 2), width, side)

    @torch.inference_mode()
    def step():
        scores = F.interpolate(head(features), scale_factor=4, mode="bilinear")
        if not good:
            scores = scores.softmax(dim=1)
        return scores.argmax(dim=1).float().mean()

    return step


@recorded(stacks=True)
@pair
def features_cloned_by_hooks(s, good):
    """Hooks of an old look at the features: each module's output is copied, and nobody reads the copies."""
    count, width = s.pick(64, 2), s.pick(64, 16)
    layers = [part for _ in range(5) for part in conv_norm(width, width, 3)]
    model = on_device(s, nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)))
    images, labels = pictures(s, count, width, s.pick(112, 32)), torch.randint(0, 100, (count,), device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features = {}

    def keeper(name):
        def keep(module, inputs, output):
            features[name] = output.detach().clone()

        return keep

    if not good:
        for name, module in model.named_modules():
            module.register_forward_hook(keeper(name))

    def step():
        return update(optimizer, F.cross_entropy(model(images).float(), labels))

    return step


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.first = nn.Linear(128, 8 * width * 16)
        sizes = [8 * width, 4 * width, 2 * width, width]
        parts = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            parts += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1), nn.ReLU()]
        self.rest = nn.Sequential(*parts, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise):
        return self.rest(self.first(noise).view(-1, 8 * self.width, 4, 4))


def discriminator_of(width):
    parts, inputs = [], 3
    for outputs in (width, 2 * width, 4 * width):
        parts += [nn.Conv2d(inputs, outputs, 4, 2, 1), nn.LeakyReLU(0.2)]
        inputs = outputs
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(inputs * 64, 1))


@pair
def generator_not_detached(s, good):
    """A GAN of pictures of 64 x 64. The discriminator learns from pictures that still hang on the generator."""
    count, width = s.pick(512, 4), s.pick(96, 8)
    generator, discriminator = on_device(s, Generator(width)), on_device(s, discriminator_of(s.pick(64, 8)))
    teach = [torch.optim.Adam(part.parameters(), lr=1e-4, betas=(0.5, 0.999)) for part in (generator, discriminator)]
    real, noise = pictures(s, count, 3, 64), torch.randn(2, count, 128, device=s.device, dtype=half(s.device))

    def step():
        fake = generator(noise[0])
        if good:
            fake = fake.detach()
        judged = discriminator(fake)
        loss = F.softplus(judged.float()).mean() + F.softplus(-discriminator(real).float()).mean()
        update(teach[1], loss)
        return update(teach[0], F.softplus(-discriminator(generator(noise[1])).float()).mean())

    return step
