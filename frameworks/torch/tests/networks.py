"""Networks of the sizes that people train, made from code: the blocks of ResNet-18, MobileNetV3, ViT, GPT-2, U-Net, an LSTM."""

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.across = None
        if stride != 1 or inputs != outputs:
            self.across = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(y + (x if self.across is None else self.across(x)))


def resnet18(classes: int = 10) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Inverted(nn.Module):
    """A depthwise block with squeeze and excitation."""

    def __init__(self, inputs: int, inner: int, outputs: int, kernel: int, stride: int, excited: bool, activation):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner), activation())
        self.deep = nn.Sequential(nn.Conv2d(inner, inner, kernel, stride, kernel // 2, groups=inner, bias=False), nn.BatchNorm2d(inner), activation())
        squeezed = max(8, inner // 4)
        self.excite = None
        if excited:
            self.excite = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, inner, 1), nn.Hardsigmoid())
        self.narrow = nn.Sequential(nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.deep(self.wide(x))
        if self.excite is not None:
            y = y * self.excite(y)
        y = self.narrow(y)
        return x + y if self.residual else y


def mobilenet(classes: int = 10) -> nn.Module:
    rows = [(16, 16, 3, 2, True, nn.ReLU), (72, 24, 3, 2, False, nn.ReLU), (88, 24, 3, 1, False, nn.ReLU), (96, 40, 5, 2, True, nn.Hardswish),
            (240, 40, 5, 1, True, nn.Hardswish), (120, 48, 5, 1, True, nn.Hardswish), (288, 96, 5, 2, True, nn.Hardswish)]
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()]
    inputs = 16
    for inner, outputs, kernel, stride, excited, activation in rows:
        layers.append(Inverted(inputs, inner, outputs, kernel, stride, excited, activation))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 256), nn.Hardswish(), nn.Linear(256, classes))


class Block(nn.Module):
    """A transformer's layer, its norms in front."""

    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.split, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in self.split(self.norms[0](x)).split(width, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(batch, length, width)
        x = x + self.join(mixed)
        return x + self.feed(self.norms[1](x))


class ViT(nn.Module):
    def __init__(self, classes: int = 10, width: int = 192, depth: int = 6):
        super().__init__()
        self.patches, self.mark = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.blocks = nn.Sequential(*(Block(width, 3, False) for _ in range(depth)), nn.LayerNorm(width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.mark.expand(x.shape[0], -1, -1), patches], 1) + self.places
        return self.head(self.blocks(x)[:, 0])


class GPT(nn.Module):
    def __init__(self, words: int = 2048, width: int = 256, depth: int = 4, length: int = 128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, 4, True) for _ in range(depth)), nn.LayerNorm(width))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.blocks(x)).flatten(0, 1)


class Language(nn.Module):
    """An LSTM over words."""

    def __init__(self, words: int = 1000, width: int = 128):
        super().__init__()
        self.words, self.layers, self.head = nn.Embedding(words, width), nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.layers(self.words(tokens))[0]).flatten(0, 1)


def _twice(inputs: int, outputs: int) -> nn.Module:
    layers = []
    for each in (inputs, outputs):
        layers += [nn.Conv2d(each, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, classes: int = 4):
        super().__init__()
        self.first, self.second, self.deep = _twice(3, 16), _twice(16, 32), _twice(32, 64)
        self.up, self.top = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.third, self.fourth, self.head = _twice(64, 32), _twice(32, 16), nn.Conv2d(16, classes, 1)

    def forward(self, x):
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        deep = self.deep(F.max_pool2d(second, 2))
        x = self.third(torch.cat([self.up(deep), second], 1))
        return self.head(self.fourth(torch.cat([self.top(x), first], 1)))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.0), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def _images(batch: int, size: int):
    return lambda: (torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))


def _words(batch: int, length: int, words: int):
    return lambda: (torch.randint(0, words, (batch, length)), torch.randint(0, words, (batch * length,)))


# A row a network: how it is made, and a batch of inputs and targets for cross entropy.
NETWORKS = {
    "perceptron": (perceptron, lambda: (torch.randn(64, 784), torch.randint(0, 10, (64,)))),
    "resnet18": (resnet18, _images(4, 64)),
    "mobilenet": (mobilenet, _images(8, 64)),
    "vit": (ViT, _images(8, 64)),
    "gpt": (GPT, _words(2, 128, 2048)),
    "lstm": (Language, _words(8, 16, 1000)),
    "unet": (UNet, lambda: (torch.randn(2, 3, 64, 64), torch.randint(0, 4, (2, 64, 64)))),
}

# Recurrent layers over sequences of other lengths, for times.
SEQUENCES = {f"lstm-{length}": (Language, _words(8, length, 1000)) for length in (32, 128, 512)}
