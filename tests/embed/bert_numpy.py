"""BERT sentence embeddings in double precision: Devlin et al. 2018, section 3 and the original layer order."""

import math

import numpy as np

_erf = np.vectorize(math.erf)


def _layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + bias


def _softmax(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _attention(x, weights, path, heads):
    def project(name):
        y = x @ weights[f"{path}.self.{name}.weight"].T + weights[f"{path}.self.{name}.bias"]
        return y.reshape(len(x), heads, -1).transpose(1, 0, 2)

    q, k, v = (project(name) for name in ("query", "key", "value"))
    seen = _softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])) @ v
    merged = seen.transpose(1, 0, 2).reshape(len(x), -1)
    return merged @ weights[f"{path}.output.dense.weight"].T + weights[f"{path}.output.dense.bias"]


def hidden_states(weights: dict, config: dict, ids: list[int]) -> np.ndarray:
    """[tokens, hidden] of the last layer; every token in segment 0."""
    w = {name.removeprefix("bert."): np.asarray(value, np.float64) for name, value in weights.items()}
    eps = config["layer_norm_eps"]

    def norm(x, path):
        return _layer_norm(x, w[f"{path}.weight"], w[f"{path}.bias"], eps)

    e = "embeddings"
    h = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.token_type_embeddings.weight"][0]
    h = norm(h + w[f"{e}.position_embeddings.weight"][: len(ids)], f"{e}.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        path = f"encoder.layer.{i}"
        h = norm(h + _attention(h, w, f"{path}.attention", config["num_attention_heads"]), f"{path}.attention.output.LayerNorm")
        inner = h @ w[f"{path}.intermediate.dense.weight"].T + w[f"{path}.intermediate.dense.bias"]
        inner = inner * (1 + _erf(inner / math.sqrt(2))) / 2
        h = norm(h + inner @ w[f"{path}.output.dense.weight"].T + w[f"{path}.output.dense.bias"], f"{path}.output.LayerNorm")
    return h


def pooled(hidden: np.ndarray, way: str = "mean", normalize: bool = True) -> np.ndarray:
    vector = {"mean": lambda h: h.mean(0), "cls": lambda h: h[0], "max": lambda h: h.max(0)}[way](hidden)
    return vector / np.linalg.norm(vector) if normalize else vector
