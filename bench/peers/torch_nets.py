"""The reference networks of hone in PyTorch: a conditional 1-D U-Net, a residual MLP, a diffusion transformer.

Each takes noisy actions [B, T, A], timesteps [B] and a condition [B, C], and returns [B, T, A]. The sizes are those of
hone's own benchmark, so that the two do the same arithmetic.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Sinusoid(nn.Module):
    """t [B] -> [B, dim]: sines, then cosines, of dim / 2 frequencies from 1 down to 1 / 10000."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        half = dim // 2
        self.register_buffer("freq", torch.exp(torch.arange(half) * (-math.log(10000.0) / (half - 1))))

    def forward(self, t: Tensor) -> Tensor:
        phase = t[:, None] * self.freq
        return torch.cat([phase.sin(), phase.cos()], dim=1)


def time_embedding(dim: int, hidden: int, activation: nn.Module) -> nn.Module:
    return nn.Sequential(Sinusoid(dim), nn.Linear(dim, hidden), activation, nn.Linear(hidden, dim))


# ---------------------------------------------------------------------- U-Net (Diffusion Policy)


class ConvBlock(nn.Sequential):
    def __init__(self, c_in: int, c_out: int, kernel: int, groups: int) -> None:
        super().__init__(
            nn.Conv1d(c_in, c_out, kernel, padding=kernel // 2), nn.GroupNorm(groups, c_out), nn.Mish()
        )


class ResidualBlock(nn.Module):
    """Two convolutions with a scale and a shift from the condition (FiLM) between them."""

    def __init__(self, c_in: int, c_out: int, cond: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.first = ConvBlock(c_in, c_out, kernel, groups)
        self.film = nn.Sequential(nn.Mish(), nn.Linear(cond, 2 * c_out))
        self.second = ConvBlock(c_out, c_out, kernel, groups)
        self.skip = nn.Conv1d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        scale, shift = self.film(cond).unsqueeze(2).chunk(2, dim=1)
        h = torch.addcmul(shift, scale, self.first(x))
        return self.second(h) + self.skip(x)


class Stage(nn.Module):
    def __init__(self, c_in: int, c_out: int, cond: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.block0 = ResidualBlock(c_in, c_out, cond, kernel, groups)
        self.block1 = ResidualBlock(c_out, c_out, cond, kernel, groups)

    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        return self.block1(self.block0(x, cond), cond)


class Unet(nn.Module):
    def __init__(
        self,
        actions: int = 3,
        cond: int = 256,
        widths: tuple[int, ...] = (64, 128, 256),
        kernel: int = 5,
        groups: int = 8,
        time_dim: int = 128,
    ) -> None:
        super().__init__()
        g = time_dim + cond
        self.time = time_embedding(time_dim, 4 * time_dim, nn.Mish())
        pairs = list(zip((actions, *widths[:-1]), widths))
        narrow = [nn.Conv1d(w, w, 3, stride=2, padding=1) for w in widths[:-1]]
        self.down = nn.ModuleList(Stage(a, b, g, kernel, groups) for a, b in pairs)
        self.narrow = nn.ModuleList([*narrow, nn.Identity()])
        self.middle = Stage(widths[-1], widths[-1], g, kernel, groups)
        self.up = nn.ModuleList(Stage(2 * b, a, g, kernel, groups) for a, b in reversed(pairs[1:]))
        self.widen = nn.ModuleList(nn.ConvTranspose1d(a, a, 4, stride=2, padding=1) for a, _ in reversed(pairs[1:]))
        self.final = nn.Sequential(ConvBlock(widths[0], widths[0], kernel, groups), nn.Conv1d(widths[0], actions, 1))

    def forward(self, x: Tensor, t: Tensor, cond: Tensor) -> Tensor:
        g = torch.cat([self.time(t), cond], dim=1)
        h = x.transpose(1, 2)
        skips: list[Tensor] = []
        for stage, narrow in zip(self.down, self.narrow):
            h = stage(h, g)
            skips.append(h)
            h = narrow(h)
        h = self.middle(h, g)
        for stage, widen in zip(self.up, self.widen):
            h = widen(stage(torch.cat([h, skips.pop()], dim=1), g))
        return self.final(h).transpose(1, 2)


# ---------------------------------------------------------------------- residual MLP


class MlpBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Mish(), nn.Linear(width, width), nn.Mish(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.net(x)


class Mlp(nn.Module):
    def __init__(
        self, horizon: int = 4, actions: int = 3, cond: int = 16, hidden: int = 512, blocks: int = 3, time_dim: int = 16
    ) -> None:
        super().__init__()
        self.time = time_embedding(time_dim, 2 * time_dim, nn.Mish())
        self.input = nn.Linear(horizon * actions + time_dim + cond, hidden)
        self.blocks = nn.Sequential(*(MlpBlock(hidden) for _ in range(blocks)))
        self.output = nn.Linear(hidden, horizon * actions)

    def forward(self, x: Tensor, t: Tensor, cond: Tensor) -> Tensor:
        h = self.input(torch.cat([x.flatten(1), self.time(t), cond], dim=1))
        return self.output(self.blocks(h)).view_as(x)


# ---------------------------------------------------------------------- diffusion transformer


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return torch.addcmul(shift, x, 1 + scale)


class Attention(nn.Module):
    """Self-attention with rotary positions: numbers k and k + n/2 of a head turn together."""

    def __init__(self, width: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        n = width // heads
        angle = torch.arange(tokens)[:, None] * 10000.0 ** (-2 * torch.arange(n // 2) / n)
        self.register_buffer("cos", torch.cat([angle.cos(), angle.cos()], dim=1))
        self.register_buffer("sin", torch.cat([-angle.sin(), angle.sin()], dim=1))

    def rotate(self, x: Tensor) -> Tensor:
        return x * self.cos + x.roll(x.shape[-1] // 2, dims=-1) * self.sin

    def forward(self, x: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v)
        return self.output(y.transpose(1, 2).reshape(b, t, w))


class DitBlock(nn.Module):
    """adaLN-Zero (Peebles, Xie 2023): shift, scale and gate of both halves come from the condition."""

    def __init__(self, width: int, heads: int, ratio: int, cond: int, tokens: int) -> None:
        super().__init__()
        self.modulation = nn.Linear(cond, 6 * width)
        self.norm0 = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.attention = Attention(width, heads, tokens)
        self.norm1 = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, ratio * width), nn.GELU(approximate="tanh"), nn.Linear(ratio * width, width)
        )
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, given: Tensor) -> Tensor:
        shift0, scale0, gate0, shift1, scale1, gate1 = self.modulation(given).unsqueeze(1).chunk(6, dim=2)
        x = torch.addcmul(x, gate0, self.attention(modulate(self.norm0(x), shift0, scale0)))
        return torch.addcmul(x, gate1, self.mlp(modulate(self.norm1(x), shift1, scale1)))


class Dit(nn.Module):
    def __init__(
        self,
        horizon: int = 16,
        actions: int = 3,
        cond: int = 256,
        width: int = 256,
        layers: int = 6,
        heads: int = 8,
        ratio: int = 4,
        time_dim: int = 256,
    ) -> None:
        super().__init__()
        self.time = time_embedding(time_dim, time_dim, nn.SiLU())
        self.cond = nn.Linear(cond, time_dim)
        self.input = nn.Linear(actions, width)
        self.blocks = nn.ModuleList(DitBlock(width, heads, ratio, time_dim, horizon) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.modulation = nn.Linear(time_dim, 2 * width)
        self.output = nn.Linear(width, actions)
        for layer in (self.modulation, self.output):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, t: Tensor, cond: Tensor) -> Tensor:
        given = F.silu(self.time(t) + self.cond(cond))
        h = self.input(x)
        for block in self.blocks:
            h = block(h, given)
        shift, scale = self.modulation(given).unsqueeze(1).chunk(2, dim=2)
        return self.output(modulate(self.norm(h), shift, scale))


# name: class, horizon, actions, condition, steps of a decision
NETS = {"unet": (Unet, 16, 3, 256, 10), "mlp": (Mlp, 4, 3, 16, 20), "dit": (Dit, 16, 3, 256, 10)}
UNET_PARAMETERS = 5_334_147


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    net = NETS[name][0]()
    count = sum(p.numel() for p in net.parameters())
    if name == "unet" and count != UNET_PARAMETERS:
        raise RuntimeError(f"unet has {count} parameters, hone's has {UNET_PARAMETERS}")
    return net
