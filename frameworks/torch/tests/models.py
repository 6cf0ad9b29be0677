"""Small models with the layers that people train."""

import torch
import torch.nn.functional as F
from torch import nn


class Convolutional(nn.Module):
    """Strided, grouped and transposed convolutions, batch and group norm, every kind of pool."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1, stride=2)
        self.batch_norm = nn.BatchNorm2d(16)
        self.grouped = nn.Conv2d(16, 32, 3, groups=4, padding=1, dilation=2)
        self.group_norm = nn.GroupNorm(4, 32)
        self.transposed = nn.ConvTranspose2d(32, 8, 3, stride=2, padding=1, output_padding=1)
        self.last = nn.Linear(8 * 3 * 3, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.batch_norm(self.first(x))), 3, 2, 1)
        x = F.gelu(self.group_norm(self.grouped(x)))
        x = F.avg_pool2d(self.transposed(x), 2)
        return self.last(F.adaptive_avg_pool2d(x, 3).flatten(1))


class Recurrent(nn.Module):
    """Two layers of an LSTM or a GRU."""

    def __init__(self, kind):
        super().__init__()
        self.layers = kind(8, 16, num_layers=2, batch_first=True)
        self.last = nn.Linear(16, 10)

    def forward(self, x):
        return self.last(self.layers(x)[0][:, -1])


class Attention(nn.Module):
    """A block of a GPT with embeddings and causal attention."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.split, self.join = nn.Linear(32, 96), nn.Linear(32, 32)
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.feed = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))
        self.head = nn.Linear(32, 50)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(length, device=tokens.device))
        q, k, v = (part.view(batch, length, 4, 8).transpose(1, 2) for part in self.split(self.norms[0](x)).split(32, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(mixed.transpose(1, 2).reshape(batch, length, 32))
        return self.head(x + self.feed(self.norms[1](x))).mean(1)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Flatten(), nn.Linear(16 * 32, 10))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 10))


class UNet(nn.Module):
    """Down, up, and a join across."""

    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(16, 1, 3, padding=1)
        self.last = nn.Linear(16 * 16, 10)

    def forward(self, x):
        across = F.leaky_relu(self.down(x))
        deep = F.elu(self.deep(F.max_pool2d(across, 2)))
        joined = torch.cat([across, self.up(deep)], 1)
        wide = F.interpolate(self.out(joined), scale_factor=2, mode="nearest")
        return self.last(F.avg_pool2d(wide, 2).flatten(1))


# A row a model: how it is made, and a batch for it.
MODELS = {
    "perceptron": (perceptron, lambda: torch.randn(4, 20)),
    "convolutional": (Convolutional, lambda: torch.randn(4, 3, 32, 32)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(4, 5, 8)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(4, 5, 8)),
    "attention": (Attention, lambda: torch.randint(0, 50, (4, 16))),
    "encoder": (encoder, lambda: torch.randn(4, 16, 32)),
    "unet": (UNet, lambda: torch.randn(4, 1, 16, 16)),
}


def losses(model, forward, data, optimizer):
    """The losses of training steps, a batch each."""
    found = []
    for x, y in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
