"""Files of Qwen's hybrid families: how Hugging Face and llama.cpp's converter spell what mlx-lm holds."""

import re

import mlx.core as mx
import numpy as np

SHIFTED = ("input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", "q_norm.weight", "k_norm.weight")


def parameter(path: str, shape: tuple, rng: np.random.Generator):
    """Decays between slow and fast; a convolution whose taps differ; None for the usual values."""
    if path.endswith("A_log"):
        return np.log(rng.uniform(0.05, 8, shape))
    if path.endswith("dt_bias"):
        return 0.5 * rng.standard_normal(shape)
    if path.endswith("conv1d.weight"):
        return 0.5 * rng.standard_normal(shape)
    return None


def raw_vectors(weights: dict) -> dict:
    """Norms as w - 1, convolutions as [channels, 1, kernel]."""
    out = {}
    for name, value in weights.items():
        if name.endswith(SHIFTED):
            value = value - 1
        if name.endswith("conv1d.weight"):
            value = mx.contiguous(value.swapaxes(1, 2))
        out[name] = value
    return out


def single_experts(weights: dict) -> dict:
    """One tensor an expert."""
    out = {}
    for name, value in weights.items():
        if ".switch_mlp." not in name:
            out[name] = value
            continue
        for expert in range(value.shape[0]):
            out[name.replace(".switch_mlp.", f".experts.{expert}.")] = mx.contiguous(value[expert])
    return out


def fused_experts(weights: dict) -> dict:
    """Rows of gate, then of up, in one tensor for all experts."""
    out = {name: value for name, value in weights.items() if ".switch_mlp." not in name}
    for name, gate in weights.items():
        if not name.endswith(".switch_mlp.gate_proj.weight"):
            continue
        of = lambda leaf: weights[name.replace("gate_proj", leaf)]  # noqa: E731
        below = name.removesuffix("switch_mlp.gate_proj.weight") + "experts."
        out[below + "gate_up_proj"] = mx.concatenate([gate, of("up_proj")], axis=1)
        out[below + "down_proj"] = of("down_proj")
    return out


_STEMS = {
    "mlp.gate": "ffn_gate_inp",
    "mlp.switch_mlp.gate_proj": "ffn_gate_exps",
    "mlp.switch_mlp.up_proj": "ffn_up_exps",
    "mlp.switch_mlp.down_proj": "ffn_down_exps",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_qkvz": "ssm_in",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
}
_LEAFLESS = {"linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias"}
_TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def tensor_name(path: str, second_norm: str = "post_attention_norm") -> str:
    """A parameter of mlx-lm -> the tensor in a GGUF file, where the norm before the MLP has this stem."""
    path = path.removeprefix("language_model.")
    module, _, leaf = path.rpartition(".")
    if module in _TOP:
        return f"{_TOP[module]}.{leaf}"
    layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", path).groups()
    module = rest.rpartition(".")[0]
    stems = _STEMS | {"post_attention_layernorm": second_norm}
    return f"blk.{layer}." + (_LEAFLESS.get(rest) or f"{stems[module]}.{leaf}")


_EXPERT_KEYS = {
    "num_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
}


def expert_metadata(config: dict) -> dict:
    return {name: config[key] for key, name in _EXPERT_KEYS.items() if config.get(key)}


def gguf_metadata(config: dict) -> dict:
    return expert_metadata(config) | {
        "ssm.conv_kernel": config["linear_conv_kernel_dim"],
        "ssm.state_size": config["linear_key_head_dim"],
        "ssm.group_count": config["linear_num_key_heads"],
        "ssm.time_step_rank": config["linear_num_value_heads"],
        "ssm.inner_size": config["linear_num_value_heads"] * config["linear_value_head_dim"],
        "full_attention_interval": config["full_attention_interval"],
    }


class ValueHeads:
    """The order of value heads in a file: the converter makes [key head, value of it] into [value of it, key head]."""

    def __init__(self, config: dict, tiled: bool):
        self.keys = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
        self.groups = (config["linear_num_key_heads"], config["linear_num_value_heads"] // config["linear_num_key_heads"])
        self.tiled = tiled

    def _rows(self, array: np.ndarray) -> np.ndarray:
        """Tiled rows in mlx-lm's order."""
        if not self.tiled:
            return array
        keys, group = self.groups
        return array.reshape(group, keys, -1, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)

    def _values(self, array: np.ndarray) -> np.ndarray:
        """As above, behind the rows of q and k."""
        return np.concatenate([array[: self.keys], self._rows(array[self.keys :])])

    def both(self, path: str, shape: tuple, rng: np.random.Generator):
        """Small parameters: (as the file stores them, as mlx-lm holds them)."""
        leaf = path.rpartition("linear_attn.")[2]
        if leaf not in ("A_log", "dt_bias", "conv1d.weight"):
            return None
        stored = parameter(path, shape, rng).astype(np.float32)
        if leaf == "A_log":
            return -np.array(mx.exp(mx.array(stored))), self._rows(stored)
        if leaf == "dt_bias":
            return stored, self._rows(stored)
        return stored[..., 0], self._values(stored)

    def ordered(self, path: str, array: np.ndarray) -> np.ndarray:
        """Planes and values of matrices in mlx-lm's order."""
        module = path.removesuffix(".weight").rpartition("linear_attn.")[2]
        if module == "in_proj_qkv":
            return self._values(array)
        if module in ("in_proj_z", "in_proj_a", "in_proj_b"):
            return self._rows(array)
        if module == "out_proj":  # columns
            return self._rows(array.T).T
        return array
