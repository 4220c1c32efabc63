"""One tiny checkpoint of the golden tests, and how a family's module in families/ lists its own.

A family module offers checkpoints() -> list[Case] and gguf_files() -> list[GgufCase] (gguf_cases.py); either may be
left out. Not the full product: every dtype and every weight format occurs, and every branch of a graph is alive in at
least one case of each dtype in which its rounding differs.
"""

import dataclasses
import typing

import numpy as np

# A parameter's path, its shape and a generator -> its values; None for the usual ones.
Parameter = typing.Callable[[str, tuple, np.random.Generator], "np.ndarray | None"]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    config: dict
    dtype: str  # float32 | bfloat16 | float16: the element type of the checkpoint
    weights: str  # dense | q4 | q8 | groups | widths | mixed | inferred | mxfp4 | mxfp8 | nvfp4
    sharded: bool = False
    prompt: int = 21  # tokens of the longest forward
    greedy_prompt: int = 21  # tokens; more than 2048 exercises the chunk plan
    greedy_tokens: int = 32
    loud: str = ""  # a parameter made 60,000 times larger, so that the residual stream leaves f16's range
    norm_centre: float = 1.0  # of norm weights: 0 where the graph multiplies by 1 + w
    embedding_spread: float = 0.25
    parameter: Parameter | None = None
    mixed: dict | None = None  # per-module exceptions of a "mixed" case in place of the usual ones
    silent: tuple = ()  # parameters that no logit depends on, by design
    sanitize: bool = False  # let the oracle see a file without lm_head: it ties the head then
    # The tensors of the converted checkpoint -> those of the file: what its author named and stored otherwise.
    as_written: typing.Callable[[dict], dict] | None = None
    # A second file beside one that its author wrote: the model as mlx-lm saves it, with what this adds to its tensors.
    # Both must give the same logits.
    converted: typing.Callable[[dict], dict] | None = None
    bounded: bool = False  # dense experts that mlx-lm cannot run in this dtype: experts.py stands in for what MLX lacks
    native: bool = False  # of 16-bit numbers that native mode is compared over, as it is over those of tiny_models.NATIVE
    float32: tuple = ()  # endings of parameters that keep f32 whatever the checkpoint's dtype


BASE = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
}
ALL = ("float32", "bfloat16", "float16")
_SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


def config(model_type: str, **changes) -> dict:
    return {"model_type": model_type, **BASE, **changes}


def table(variants: dict[str, dict], rows: list[tuple], **options) -> list[Case]:
    """Rows (variant, dtypes, weights[, options]) become cases named variant-dtype-weights."""
    cases = []
    for variant, dtypes, weights, *more in rows:
        for dtype in dtypes:
            name = f"{variant}-{_SHORT[dtype]}-{weights}"
            cases.append(Case(name, variants[variant], dtype, weights, **options, **(more[0] if more else {})))
    return cases
