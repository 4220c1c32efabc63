"""What the formulas of the KV codecs give, in plain NumPy: records and decoded values that the C++ test compares with
its own bit by bit.

    make_kv_codecs.py OUTDIR [SEED]

OUTDIR/cases.json: {name, form, bits, group, parity, dim}. OUTDIR/expected.safetensors: name.x [tokens, heads, dim],
name.records [heads, tokens, bytes], name.decoded [heads, tokens, dim] (turbo values: in the rotated domain), name.back
(turbo values: turned back); levels.B and boundaries.B, signs.D.
"""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import environment  # noqa: E402

environment.require()

import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

F32, F16 = np.float32, np.float16
HEADS, TOKENS = 2, 70
HUGE = F32(65504)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """[..., n] unsigned codes to a bit stream: element i occupies bits [i b, (i + 1) b), lowest first."""
    stream = (codes[..., None].astype(np.uint32) >> np.arange(bits, dtype=np.uint32)) & 1
    stream = stream.reshape(*codes.shape[:-1], -1)
    return np.packbits(stream.astype(np.uint8), axis=-1, bitorder="little")


def finite_half(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -HUGE, HUGE).astype(F16)


def half_down(x: np.ndarray) -> np.ndarray:
    near = finite_half(x)
    return np.where(near.astype(F32) > np.maximum(x, -HUGE), np.nextafter(near, F16(-np.inf)), near)


def half_up_scale(x: np.ndarray) -> np.ndarray:
    near = finite_half(np.maximum(x, F32(0)))
    up = np.where(near.astype(F32) < np.minimum(x, HUGE), np.nextafter(near, F16(np.inf)), near)
    return np.maximum(up, F16(2.0**-24))


def codes_of(x: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.clip(np.rint(x), F32(low), F32(high)).astype(np.int32)


def affine(x: np.ndarray, bits: int):
    """x [..., groups, group] -> codes, (scale, bias), decoded."""
    top = F32(2**bits - 1)
    lo, hi = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    scale = np.maximum((hi - lo) / top, F32(1e-7))
    use_low = np.abs(lo) > np.abs(hi)
    scale = np.where(use_low, scale, -scale)
    edge = np.where(use_low, lo, hi)
    steps = np.rint(edge / scale)
    fitted = edge / np.where(steps == 0, F32(1), steps)
    scale = finite_half(np.where(steps == 0, scale, fitted))
    bias = finite_half(np.where(steps == 0, F32(0), edge))
    s, b = scale.astype(F32), bias.astype(F32)
    codes = codes_of((x - b) / s, 0, 2**bits - 1)
    return codes, (scale, bias), codes.astype(F32) * s + b


def safe_keys(x: np.ndarray, bits: int):
    lo, hi = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    if bits == 8:
        origin = finite_half((hi + lo) / F32(2))
        at = origin.astype(F32)
        scale = half_up_scale(np.maximum(hi - at, at - lo) / F32(127))
        low, high = -127, 127
    else:
        low, high = 0, 2**bits - 1
        origin = half_down(lo)
        at = origin.astype(F32)
        scale = half_up_scale((hi - at) / F32(high))
    s = scale.astype(F32)
    codes = codes_of((x - at) / s, low, high)
    return codes, (scale, origin), codes.astype(F32) * s + at


def published_keys(x: np.ndarray, bits: int):
    lo, hi = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    if bits == 8:
        low, high = -127, 127
        scale = (hi - lo) / F32(254)
        divisor = scale + F32(1e-8)
        zero = np.rint((hi + lo) / (F32(2) * divisor))
    else:
        low, high = 0, 2**bits - 1
        scale = (hi - lo) / F32(high)
        divisor = scale + F32(1e-8)
        zero = np.rint(lo / divisor)
    codes = codes_of(x / divisor - zero, low, high)
    scale, zero = scale.astype(F16), zero.astype(F16)
    return codes, (scale, zero), (codes.astype(F32) + zero.astype(F32)) * scale.astype(F32)


def hadamard(x: np.ndarray) -> np.ndarray:
    """H x / sqrt(dim) by stages of sums and differences."""
    dim = x.shape[-1]
    distance = 1
    while distance < dim:
        pairs = x.reshape(*x.shape[:-1], dim // (2 * distance), 2, distance)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        x = np.stack([a + b, a - b], axis=-2).reshape(x.shape)
        distance *= 2
    return x * F32(1 / math.sqrt(dim))


def check_hadamard(rng: np.random.Generator, dim: int) -> None:
    matrix = np.ones((1, 1))
    while len(matrix) < dim:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    x = rng.standard_normal((3, dim)).astype(F32)
    np.testing.assert_allclose(hadamard(x), x.astype(np.float64) @ matrix / math.sqrt(dim), atol=1e-5)


def split_mix(state: int, count: int) -> list[int]:
    words, mask = [], 2**64 - 1
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        words.append(z ^ (z >> 31))
    return words


def signs_of(dim: int) -> np.ndarray:
    words = split_mix(dim, dim // 64)
    return np.array([-1.0 if words[i // 64] >> (i % 64) & 1 else 1.0 for i in range(dim)], F32)


def lloyd_max(bits: int) -> np.ndarray:
    """Levels of the quantizer of least squared error for N(0, 1): Newton's method on the conditions that boundaries lie
    midway and levels are means of their cells, by Gauss-Legendre quadrature in each cell; the outer cells end at 12."""
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def density(x):
        return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    half = 2**bits // 2
    inner = math.sqrt(3) * np.array([quantile(0.5 + 0.5 * i / half) for i in range(1, half)])
    for _ in range(12):
        edges = np.concatenate([[0.0], inner, [12.0]])
        pieces = 1 if half > 64 else 16  # wide cells are cut until the quadrature is exact
        cuts = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(pieces + 1) / pieces
        middle, reach = (cuts[:, 1:] + cuts[:, :-1]) / 2, (cuts[:, 1:] - cuts[:, :-1]) / 2
        points = middle[..., None] + reach[..., None] * nodes
        mass = (density(points) * weights * reach[..., None]).sum((-1, -2))
        levels = (points * density(points) * weights * reach[..., None]).sum((-1, -2)) / mass
        wrong = inner - (levels[:-1] + levels[1:]) / 2
        at = density(edges)
        by_low = at[:-1] * (levels - edges[:-1]) / mass
        by_high = at[1:] * (edges[1:] - levels) / mass
        count = half - 1
        slope = np.diag(1 - (by_high[:-1] + by_low[1:]) / 2)
        slope[np.arange(1, count), np.arange(count - 1)] = -by_low[1:-1] / 2
        slope[np.arange(count - 1), np.arange(1, count)] = -by_high[1:-1] / 2
        step = np.linalg.solve(slope, wrong)
        inner = inner - step
        if np.abs(step).max() < 1e-14:
            break
    assert np.abs(step).max() < 1e-12, "Newton's method did not settle"  # far below the rounding to f32
    return np.concatenate([-levels[::-1], levels])


def quantile(p: float) -> float:
    import statistics

    return statistics.NormalDist().inv_cdf(p)


def turbo_values(x: np.ndarray, bits: int, levels: np.ndarray):
    """x [..., dim] -> codes, (scale,), decoded in the rotated domain, decoded and turned back."""
    dim = x.shape[-1]
    signs = signs_of(dim)
    y = hadamard(x * signs).reshape(*x.shape[:-1], dim // 32, 32)
    total = np.zeros(y.shape[:-1])
    for i in range(32):
        total = total + y[..., i].astype(np.float64) ** 2
    size = np.sqrt(total / 32).astype(F32)[..., None]
    middles = ((levels[1:] + levels[:-1]) / 2).astype(F32)
    codes = np.searchsorted(middles, y / (size + F32(1e-8)), side="left")
    scale = finite_half(size)
    decoded = (levels.astype(F32)[codes] * scale.astype(F32)).reshape(x.shape)
    return codes, (scale,), decoded, hadamard(decoded) * signs


def inputs(rng: np.random.Generator, dim: int) -> np.ndarray:
    """Gaussian tokens of many sizes; some groups are constant, zero, narrow and far away, tiny, huge or one-sided."""
    x = rng.standard_normal((TOKENS, HEADS, dim)) * 2.0 ** rng.integers(-6, 7, (TOKENS, HEADS, 1))
    x = x.reshape(TOKENS, HEADS, dim // 32, 32)
    special = [
        lambda g: np.full(32, 0.5), lambda g: np.full(32, -0.1), lambda g: np.zeros(32), lambda g: g * 1e-3 + 300,
        lambda g: g * 0.1 - 5000, lambda g: g * 1e-9, lambda g: g * 1e5, lambda g: np.abs(g), lambda g: -np.abs(g) - 1,
        lambda g: np.where(np.arange(32) == 5, 40.0, g), lambda g: g * 1e-6 + 2.5e-4, lambda g: np.full(32, 1e6),
    ]
    for token in range(len(special) * 2):
        group = rng.integers(0, dim // 32)
        x[token, token % HEADS, group] = special[token // 2](x[token, token % HEADS, group])
    x[-1] = 0  # whole heads of zeros: their rotated values lie on a boundary
    return x.reshape(TOKENS, HEADS, dim).astype(F32)


def record(codes: np.ndarray, parameters: tuple, bits: int) -> np.ndarray:
    """codes [tokens, heads, groups, group] and parameters [tokens, heads, groups, 1] -> [heads, tokens, bytes]."""
    flat = codes.reshape(*codes.shape[:2], -1) & (2**bits - 1)
    halves = np.ascontiguousarray(np.concatenate(parameters, axis=-1)).view(np.uint8)
    halves = halves.reshape(*codes.shape[:2], -1)
    return np.ascontiguousarray(np.concatenate([pack(flat, bits), halves], axis=-1).swapaxes(0, 1))


def all_cases() -> list[dict]:
    cases = []
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            for dim in (64, 96, 128, 256, 576):
                if dim % group == 0:
                    cases.append({"form": "affine", "bits": bits, "group": group, "parity": False, "dim": dim})
    for dim in (64, 128, 256, 512):
        for bits in (2, 4, 5, 8):
            for parity in (False, True):
                cases.append({"form": "turbo_keys", "bits": bits, "group": 32, "parity": parity, "dim": dim})
        for bits in (2, 3, 4, 5, 8):
            cases.append({"form": "turbo_values", "bits": bits, "group": 32, "parity": False, "dim": dim})
    for case in cases:
        case["name"] = "-".join(str(v).lower() for v in case.values())
    return cases


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20250611
    print(f"seed {seed}")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    np.seterr(all="ignore")  # the published format overflows on purpose
    tensors, levels = {}, {bits: lloyd_max(bits) for bits in (2, 3, 4, 5, 8)}
    for bits, values in levels.items():
        tensors[f"levels.{bits}"] = values.astype(F32)
        tensors[f"boundaries.{bits}"] = ((values[1:] + values[:-1]) / 2).astype(F32)
    for dim in (64, 128, 256, 512):
        check_hadamard(rng, dim)
        tensors[f"signs.{dim}"] = signs_of(dim)
    cases = all_cases()
    for case in cases:
        name, bits = case["name"], case["bits"]
        x = inputs(rng, case["dim"])
        grouped = x.reshape(TOKENS, HEADS, -1, case["group"])
        if case["form"] == "turbo_values":
            codes, parameters, decoded, back = turbo_values(x, bits, levels[bits])
            tensors[f"{name}.back"] = np.ascontiguousarray(back.swapaxes(0, 1))
        else:
            encode = affine if case["form"] == "affine" else published_keys if case["parity"] else safe_keys
            codes, parameters, decoded = encode(grouped, bits)
        tensors[f"{name}.x"] = x
        tensors[f"{name}.records"] = record(codes, parameters, bits)
        tensors[f"{name}.decoded"] = np.ascontiguousarray(decoded.reshape(x.shape).swapaxes(0, 1))
        case["record"] = tensors[f"{name}.records"].shape[-1]
    save_file(tensors, folder / "expected.safetensors")
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
