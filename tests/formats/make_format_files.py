"""Files for the format tests, written and decoded by other people's code.

    make_format_files.py OUTDIR [SEED]

blocks.gguf           random blocks of each GGUF block format, two a row; every scale field is a finite f16 that is often
                      subnormal, negative or extreme
values.safetensors    what gguf.quants decodes them to, f32
numbers.safetensors   f32 rows, "plain"; what gguf.quants makes of them, by format
written.safetensors   every dtype mlx can save, with known values
written.gguf          every metadata type, and tensors of the plain types
split-*.gguf          a model in three parts
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
import environment

environment.require()

import gguf  # noqa: E402
import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402
from gguf import GGMLQuantizationType as Type  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

ROWS, BLOCKS = 256, 2
# Format -> byte offsets of its f16 fields.
HALVES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
    Type.MXFP4: [],
}
EXTREMES = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00], np.uint16)


def random_halves(rng: np.random.Generator, count: int) -> np.ndarray:
    """Finite f16 bit patterns: a third special, a third subnormal, the rest anything."""
    bits = rng.integers(0, 0x7C00, count, np.uint16) | (rng.integers(0, 2, count, np.uint16) << 15)
    kind = rng.integers(0, 3, count)
    bits = np.where(kind == 0, rng.choice(EXTREMES, count), bits)
    return np.where(kind == 1, (bits & 0x83FF), bits).astype(np.uint16)


def random_blocks(rng: np.random.Generator, kind: Type) -> np.ndarray:
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = rng.integers(0, 256, (ROWS * BLOCKS, size), np.uint8)
    for offset in HALVES[kind]:
        blocks[:, offset : offset + 2] = random_halves(rng, len(blocks)).view(np.uint8).reshape(-1, 2)
    if kind == Type.MXFP4:  # every exponent but 255, which stands for NaN
        blocks[:, 0] = np.arange(len(blocks)) % 255
    return blocks.reshape(ROWS, BLOCKS * size)


def write_blocks(folder: pathlib.Path, rng: np.random.Generator) -> None:
    writer = gguf.GGUFWriter(folder / "blocks.gguf", "llama")
    values = {}
    for kind in HALVES:
        blocks = random_blocks(rng, kind)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
        values[kind.name] = gguf.quants.dequantize(blocks, kind).astype(np.float32)
    finish(writer)
    save_file(values, folder / "values.safetensors")


def numbers_to_quantize(rng: np.random.Generator) -> np.ndarray:
    """Rows of two blocks: of every size that f16 scales hold, zeros, halves between two codes, and equal magnitudes."""
    plain = rng.standard_normal((ROWS, 64)).astype(np.float32)
    plain *= np.exp2(rng.integers(-30, 16, (ROWS, 1))).astype(np.float32)
    plain[:8] = 0
    plain[8:40] = rng.integers(-254, 255, (32, 64)) / np.float32(2)
    plain[8:40, ::32] = 127
    plain[40:72] = np.where(rng.integers(0, 2, (32, 64)) == 1, np.float32(3), np.float32(-3))
    return plain


def write_numbers(folder: pathlib.Path, rng: np.random.Generator) -> None:
    plain = numbers_to_quantize(rng)
    made = {kind.name: gguf.quants.quantize(plain, kind) for kind in (Type.Q8_0, Type.Q4_0)}
    save_file({"plain": plain, **made}, folder / "numbers.safetensors")


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_safetensors(folder: pathlib.Path) -> None:
    ramp = mx.arange(12).reshape(3, 4)
    names = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32"]
    arrays = {name: ramp.astype(getattr(mx, name)) for name in names}
    arrays["bool"] = ramp % 2 == 1
    arrays["complex64"] = ramp.astype(mx.complex64)
    arrays["scalar"] = mx.array(7.0)
    arrays["empty"] = mx.zeros((0, 4))
    mx.save_safetensors(str(folder / "written.safetensors"), arrays, {"format": "mlx"})


def write_gguf(folder: pathlib.Path) -> None:
    writer = gguf.GGUFWriter(folder / "written.gguf", "llama")
    writer.add_custom_alignment(64)
    for width in (8, 16, 32, 64):
        getattr(writer, f"add_uint{width}")(f"t.u{width}", (1 << min(width, 63)) - 1)
        getattr(writer, f"add_int{width}")(f"t.i{width}", -(1 << (width - 1)))
    writer.add_float32("t.f32", 0.5)
    writer.add_float64("t.f64", 1e300)
    writer.add_bool("t.bool", True)
    writer.add_string("t.string", "gruß")
    writer.add_array("t.ints", [1, -2, 3])
    writer.add_array("t.floats", [0.25, -0.5])
    writer.add_array("t.bools", [True, False])
    writer.add_array("t.strings", ["a", "", "ü"])
    ramp = np.arange(12).reshape(3, 4)
    for kind in (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64):
        writer.add_tensor(np.dtype(kind).name, ramp.astype(kind))
    bf16 = (ramp.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    writer.add_tensor("bfloat16", bf16.view(np.uint8), raw_dtype=Type.BF16)
    finish(writer)


def write_split(folder: pathlib.Path) -> None:
    for part in range(3):
        writer = gguf.GGUFWriter(folder / f"split-{part + 1:05}-of-00003.gguf", "llama")
        writer.add_uint16("split.no", part)
        writer.add_uint16("split.count", 3)
        writer.add_int32("split.tensors.count", 3)
        writer.add_tensor(f"part{part}", np.full((2, 2), part, np.float32))
        finish(writer)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20240817
    print(f"seed {seed}")
    folder.mkdir(parents=True, exist_ok=True)
    write_blocks(folder, np.random.default_rng(seed))
    write_numbers(folder, np.random.default_rng(seed + 1))
    write_safetensors(folder)
    write_gguf(folder)
    write_split(folder)


main()
