"""The two programs that encode KV: mlx-lm, and mlx-optiq, which works by changing mlx-lm in place.

  dense, affine over full layers   mlx-lm itself (kv_bits, kv_group_size, quantized_kv_start)
  affine over sliding layers       mlx-lm raises NotImplementedError; mlx-optiq's rotating cache in mlx-lm's own loop,
                                   which is `optiq serve --kv-bits --no-fused-kv`
  config                           what `optiq serve --kv-config` installs for its sequential path: conversion by layer
                                   and the tiled attention
"""

import dataclasses
import importlib
import pathlib

import mlx.core as mx

GENERATE = importlib.import_module("mlx_lm.generate")  # mlx_lm.generate is the function


def order(model: str, kv: str) -> int:
    """Cases that need more of mlx-optiq come later."""
    return 2 if kv == "config" else 1 if model.startswith("gemma3_text") and kv != "dense" else 0


@dataclasses.dataclass(frozen=True)
class Oracle:
    bits: int | None
    group: int
    start: int

    def convert(self, cache: list) -> None:
        GENERATE.maybe_quantize_kv_cache(
            cache, quantized_kv_start=self.start, kv_group_size=self.group, kv_bits=self.bits
        )

    def greedy(self, model, prompt: list[int], count: int) -> list[int]:
        """mlx-lm's own generation loop; end tokens do not stop it."""
        steps = GENERATE.generate_step(
            mx.array(prompt),
            model,
            max_tokens=count,
            kv_bits=self.bits,
            kv_group_size=self.group,
            quantized_kv_start=self.start,
        )
        return [int(token) for token, _ in steps]


def install(model: str, kv: str, start: int, config: pathlib.Path) -> Oracle:
    """The oracle of a policy. What mlx-optiq installs stays installed: see order()."""
    if kv == "dense":
        return Oracle(None, 64, start)
    if kv == "config":
        return _optiq(config, start)
    bits, group = map(int, kv.split(":")[1:])
    if order(model, kv) == 1:
        from optiq.runtime.kv import patch_rotating_to_quantized

        patch_rotating_to_quantized()
    return Oracle(bits, group, start)


def _optiq(config: pathlib.Path, start: int) -> Oracle:
    from optiq import serve
    from optiq.runtime import fused_quant_sdpa, streaming_kv_quant

    streaming_kv_quant.install()
    fused_quant_sdpa.install()
    layers = serve._load_kv_config(str(config))
    serve.install_mixed_kv(layers, start)
    # The number is not looked at: it only must not be None.
    return Oracle(max(layer.bits for layer in layers), 64, start)
