"""Random GGUF blocks and what they mean: the exact values, and the affine or mxfp4 planes MLX can multiply by.

Blocks are drawn field by field, not quantized from floats: every scale, minimum, sign and nibble pattern occurs. The
exact values come from the gguf package, and the planes below are checked against them element by element.
"""

import gguf
import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType as Type

# Formats with an exact MLX form, and their bits. Scales and biases stay f32: f16 cannot hold the products of K-quants.
AFFINE_BITS = {Type.Q4_0: 4, Type.Q4_1: 4, Type.Q5_0: 5, Type.Q5_1: 5, Type.Q8_0: 8, Type.Q4_K: 4, Type.Q5_K: 5}
PLAIN = {Type.F32: np.float32, Type.F16: np.float16}


def _f16(values: np.ndarray) -> np.ndarray:
    """[n] -> [n, 2] bytes of little-endian half floats."""
    return values.astype("<f2").reshape(-1, 1).view(np.uint8)


def _signed_scales(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    return size * rng.uniform(0.5, 1.5, count) * rng.choice([1.0, 1.0, -1.0], count)


def _small_head(kind: Type, rng: np.random.Generator, count: int, spread: float) -> list[np.ndarray]:
    """Scale (and minimum) of the 32-element formats, so that values deviate by about `spread`."""
    steps = {Type.Q4_0: 4.6, Type.Q4_1: 4.6, Type.Q5_0: 9.2, Type.Q5_1: 9.2, Type.Q8_0: 74.0, Type.IQ4_NL: 70.0}[kind]
    scale = _signed_scales(rng, count, spread / steps)
    if kind not in (Type.Q4_1, Type.Q5_1):
        return [_f16(scale)]
    half = 7.5 if kind == Type.Q4_1 else 15.5
    return [_f16(scale), _f16(-scale * half * rng.uniform(0.8, 1.2, count))]


def _k_head(rng: np.random.Generator, count: int, scale: float, minimum: float) -> list[np.ndarray]:
    return [_f16(scale * rng.uniform(0.5, 1.5, count)), _f16(minimum * rng.uniform(0.5, 1.5, count))]


def random_rows(kind: Type, rows: int, columns: int, spread: float, rng: np.random.Generator) -> np.ndarray:
    """A matrix in the file's form: float rows for plain types, u8 [rows, bytes per row] for block types."""
    if kind in PLAIN:
        return (spread * rng.standard_normal((rows, columns))).astype(PLAIN[kind])
    if kind == Type.BF16:
        return gguf.quants.quantize((spread * rng.standard_normal((rows, columns))).astype(np.float32), kind)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    count = rows * columns // elements
    head: list[np.ndarray] = []
    tail: list[np.ndarray] = []
    if kind in (Type.Q4_K, Type.Q5_K):
        top = 15 if kind == Type.Q4_K else 31
        step = spread / (top * 0.29 * 36)  # a uniform code deviates by 0.29 of its range; 6-bit scales average 32
        head = _k_head(rng, count, step, step * top / 2)
    elif kind == Type.Q2_K:
        tail = _k_head(rng, count, spread / 9, spread / 6)
    elif kind == Type.Q3_K:
        tail = [_f16(_signed_scales(rng, count, spread / 45))]
    elif kind == Type.Q6_K:
        tail = [_f16(_signed_scales(rng, count, spread / 1400))]
    elif kind == Type.IQ4_XS:
        head = [_f16(_signed_scales(rng, count, spread / 1300))]
    elif kind == Type.MXFP4:
        exponent = 127 + int(np.floor(np.log2(spread / 2.9)))
        head = [rng.integers(exponent - 1, exponent + 2, (count, 1)).astype(np.uint8)]
    else:
        head = _small_head(kind, rng, count, spread)
    filled = sum(part.shape[1] for part in head + tail)
    body = rng.integers(0, 256, (count, size - filled)).astype(np.uint8)
    return np.concatenate([*head, body, *tail], axis=1).reshape(rows, -1)


def exact(kind: Type, raw: np.ndarray) -> np.ndarray:
    """The f32 value of every element, by the gguf package."""
    return gguf.quants.dequantize(raw, kind).astype(np.float32)


def _half(raw: np.ndarray, at: int) -> np.ndarray:
    """The half float at byte `at` of each block, as f32 [blocks, 1]."""
    return np.ascontiguousarray(raw[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(bytes_: np.ndarray) -> np.ndarray:
    """[n, b] -> [n, 2 b]: all low nibbles, then all high ones."""
    return np.concatenate([bytes_ & 15, bytes_ >> 4], axis=1)


def _small_codes(kind: Type, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes [blocks, 32], scale and bias [blocks, 1] of the 32-element formats."""
    scale = _half(raw, 0)
    if kind == Type.Q8_0:
        return raw[:, 2:] ^ 0x80, scale, -128 * scale
    if kind == Type.Q4_0:
        return _nibbles(raw[:, 2:]), scale, -8 * scale
    if kind == Type.Q4_1:
        return _nibbles(raw[:, 4:]), scale, _half(raw, 2)
    high_at = 2 if kind == Type.Q5_0 else 4
    high = np.unpackbits(raw[:, high_at : high_at + 4], axis=1, bitorder="little")
    codes = _nibbles(raw[:, high_at + 4 :]) | high << 4
    return codes, scale, -16 * scale if kind == Type.Q5_0 else _half(raw, 2)


def _k_codes(kind: Type, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes [blocks, 8, 32], scale and bias [blocks, 8] of Q4_K and Q5_K."""
    packed = raw[:, 4:16]
    low, mid, high = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], axis=1)
    minima = np.concatenate([mid & 63, (high >> 4) | (mid >> 6) << 4], axis=1)
    nibbles = raw[:, -128:].reshape(-1, 4, 1, 32)
    codes = np.concatenate([nibbles & 15, nibbles >> 4], axis=2).reshape(-1, 8, 32)
    if kind == Type.Q5_K:
        bits = raw[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)
        codes = codes | (bits & 1) << 4
    return codes, _half(raw, 0) * scales, -_half(raw, 2) * minima


def _pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """u8 [rows, columns] -> u32 [rows, columns * bits / 32], one least-significant-bit-first stream per row."""
    stream = np.unpackbits(codes[..., None], axis=2, bitorder="little")[..., :bits]
    return np.packbits(stream.reshape(codes.shape[0], -1), axis=1, bitorder="little").view("<u4")


def planes(kind: Type, raw: np.ndarray) -> dict[str, mx.array] | None:
    """weight, scales and biases for mx.quantized_matmul (group 32), or None when MLX has no exact form."""
    rows = raw.shape[0]
    if kind == Type.MXFP4:
        blocks = raw.reshape(-1, 17)
        packed = _pack(_nibbles(blocks[:, 1:]).reshape(rows, -1), 4)
        found = {"weight": mx.array(packed), "scales": mx.array(blocks[:, 0].reshape(rows, -1))}
        values = mx.dequantize(found["weight"], found["scales"], group_size=32, bits=4, mode="mxfp4", dtype=mx.float32)
    elif kind in AFFINE_BITS:
        blocks = raw.reshape(-1, gguf.GGML_QUANT_SIZES[kind][1])
        read = _k_codes if kind in (Type.Q4_K, Type.Q5_K) else _small_codes
        codes, scale, bias = (part.reshape(rows, -1) for part in read(kind, blocks))
        found = {
            "weight": mx.array(_pack(codes, AFFINE_BITS[kind])),
            "scales": mx.array(scale),
            "biases": mx.array(bias),
        }
        values = codes * np.repeat(scale, 32, axis=1) + np.repeat(bias, 32, axis=1)
    else:
        return None
    assert np.array_equal(np.array(values), exact(kind, raw)), f"{kind.name}: the planes are not exact"
    return found
