"""The turbo codec in NumPy, written from its definition alone, without a look at ours.

Everything between input and planes is float32, in the order that the definition says. Tables are computed here: the
Lloyd-Max levels of N(0, 1) by Newton's method, the signs by SplitMix64.
"""

import functools
import math

import numpy as np

GROUP = 32
F = np.float32


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Of N(0, 1) between the two, without losing digits in a tail."""
    tail = np.vectorize(lambda x: 0.5 * math.erfc(x / math.sqrt(2)))
    upper = np.where(low > 0, tail(np.abs(low)) - tail(np.where(low > 0, high, 1)), 0)
    lower = np.where(high < 0, tail(np.abs(high)) - tail(np.where(high < 0, -low, 1)), 0)
    across = 1 - tail(np.where(low <= 0, -low, 1)) - tail(np.where(high >= 0, high, 1))
    return np.where(low > 0, upper, np.where(high < 0, lower, across))


@functools.cache
def levels(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """2^bits levels and the 2^bits - 1 boundaries between them, float32."""
    count = 2**bits
    # Start at the quantiles of N(0, 3): the density of optimal levels goes with the cube root of the density.
    target = (np.arange(count) + 0.5) / count
    x = np.zeros(count)
    for _ in range(100):
        x -= (np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(6))))(x) - target) / (
            np.exp(-x * x / 6) / math.sqrt(6 * math.pi)
        ).clip(1e-4)
    for _ in range(60):
        edges = np.concatenate([[-40.0], (x[1:] + x[:-1]) / 2, [40.0]])
        low, high = edges[:-1], edges[1:]
        mass = _mass(low, high)
        mean = (_density(low) - _density(high)) / mass
        by_low, by_high = _density(low) * (mean - low) / mass, _density(high) * (high - mean) / mass
        jacobian = np.eye(count)
        for i in range(count):
            if i > 0:
                jacobian[i, i - 1] -= by_low[i] / 2
                jacobian[i, i] -= by_low[i] / 2
            if i < count - 1:
                jacobian[i, i] -= by_high[i] / 2
                jacobian[i, i + 1] -= by_high[i] / 2
        x = x - np.linalg.solve(jacobian, x - mean)
        x = (x - x[::-1]) / 2
    assert np.abs(x - mean).max() < 1e-12, f"{bits} bits: no convergence"
    return x.astype(F), ((x[1:] + x[:-1]) / 2).astype(F)


def signs(dim: int) -> np.ndarray:
    """+1 or -1: bit i % 64 of the SplitMix64 output number i / 64, from the state `dim`."""
    state, mask, out = dim, 2**64 - 1, []
    for _ in range(dim // 64):
        state = (state + 0x9E3779B97F4A7C15) & mask
        word = state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        word ^= word >> 31
        out += [-1.0 if word >> bit & 1 else 1.0 for bit in range(64)]
    return np.array(out, F)


def hadamard(x: np.ndarray) -> np.ndarray:
    """Sylvester's transform of the last axis by butterflies, then the factor 1/sqrt(n)."""
    n, step = x.shape[-1], 1
    y = x.astype(F).copy()
    while step < n:
        pairs = y.reshape(*x.shape[:-1], n // (2 * step), 2, step)
        a, b = pairs[..., 0, :].copy(), pairs[..., 1, :].copy()
        pairs[..., 0, :], pairs[..., 1, :] = a + b, a - b
        step *= 2
    return y * F(1 / math.sqrt(n))


def _groups(x: np.ndarray) -> np.ndarray:
    return x.astype(F).reshape(*x.shape[:-1], x.shape[-1] // GROUP, GROUP)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """A little-endian bit stream along the last axis."""
    stream = (codes[..., None].astype(np.uint32) >> np.arange(bits, dtype=np.uint32)) & 1
    stream = stream.reshape(*codes.shape[:-1], -1)
    return np.packbits(stream.astype(np.uint8), axis=-1, bitorder="little")


def unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    stream = np.unpackbits(packed, axis=-1, bitorder="little")
    stream = stream.reshape(*packed.shape[:-1], -1, bits).astype(np.uint32)
    return (stream << np.arange(bits, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)


def _key_codes(codes: np.ndarray, bits: int, shape: tuple) -> np.ndarray:
    flat = codes.reshape(shape)
    return flat.astype(np.int8) if bits == 8 else pack(flat, bits)


def encode_keys(x: np.ndarray, bits: int, parity: bool) -> list[np.ndarray]:
    g = _groups(x)
    low, high = g.min(-1, keepdims=True), g.max(-1, keepdims=True)
    least, most = (F(-127), F(127)) if bits == 8 else (F(0), F(2**bits - 1))
    if parity:
        scale = (high - low) / (most - least)
        step = scale + F(1e-8)
        zero = np.round((high + low) / (F(2) * step)) if bits == 8 else np.round(low / step)
        codes = np.clip(np.round(g / step - zero), least, most)
        with np.errstate(over="ignore"):
            return [_key_codes(codes, bits, x.shape), *(p[..., 0].astype(np.float16) for p in (scale, zero))]
    if bits == 8:
        base = ((high + low) / F(2)).clip(-65504, 65504).astype(np.float16)
        reach = np.maximum(high - base.astype(F), base.astype(F) - low)
    else:
        base = _half(low.clip(-65504, 65504), -np.inf)
        reach = high - base.astype(F)
    scale = _half((reach / most).clip(F(2**-24), F(65504)), np.inf)
    codes = np.clip(np.round((g - base.astype(F)) / scale.astype(F)), least, most)
    return [_key_codes(codes, bits, x.shape), scale[..., 0], base[..., 0]]


def _half(x: np.ndarray, toward: float) -> np.ndarray:
    """The float16 nearest to x on the side of `toward`."""
    nearest = x.astype(np.float16)
    wide = nearest.astype(F)
    wrong = wide < x if toward > 0 else wide > x
    return np.where(wrong, np.nextafter(nearest, np.float16(toward)), nearest)


def decode_keys(planes: list[np.ndarray], bits: int, parity: bool) -> np.ndarray:
    codes = _groups(planes[0] if bits == 8 else unpack(planes[0], bits))
    scale, zero = (p.astype(F)[..., None] for p in planes[1:])
    with np.errstate(invalid="ignore"):
        g = (codes + zero) * scale if parity else codes * scale + zero
    return g.reshape(*g.shape[:-2], -1)


def encode_values(x: np.ndarray, bits: int) -> list[np.ndarray]:
    y = _groups(hadamard(signs(x.shape[-1]) * x.astype(F)))
    total = np.zeros(y.shape[:-1], F)
    for i in range(GROUP):  # one after the other, as MLX sums 32 elements on a CPU
        total += y[..., i] * y[..., i]
    scale = np.sqrt(total * F(1 / GROUP))[..., None]
    codes = np.searchsorted(levels(bits)[1], (y / (scale + F(1e-8))).reshape(x.shape), side="left")
    return [codes.astype(np.uint8) if bits == 8 else pack(codes, bits), scale[..., 0].astype(np.float16)]


def decode_values(planes: list[np.ndarray], bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Still rotated, and turned back."""
    codes = planes[0] if bits == 8 else unpack(planes[0], bits)
    g = _groups(levels(bits)[0][codes.astype(np.int64)]) * planes[1].astype(F)[..., None]
    rotated = g.reshape(*g.shape[:-2], -1)
    return rotated, signs(rotated.shape[-1]) * hadamard(rotated)
