"""A gated delta layer in double precision from its formulas, with a bound of what f32 arithmetic may add.

Every quantity is a pair (value, bound). The bounds follow the operations of kernels/gated_delta.h to first order in
U = 2^-24, half the distance between neighbouring f32 around 1; the last factor stands for the higher orders.
"""

import numpy as np

U = 2.0 ** -24


def sum_bound(count: int) -> float:
    """A lane adds count/16 terms by fma, the tree 4 more, the operands' product one."""
    return (count / 16 + 8) * U


def convolution(x: np.ndarray, weight: np.ndarray) -> tuple:
    kernel = weight.shape[1]
    padded = np.concatenate([np.zeros((kernel - 1, x.shape[1])), x])
    terms = np.stack([padded[j:j + len(x)] * weight[:, j] for j in range(kernel)])
    z = terms.sum(0)
    y = z / (1 + np.exp(-z))
    # silu's slope is below 1.1; exp, a sum and a division follow.
    return y, 1.1 * kernel * U * np.abs(terms).sum(0) + 6 * U * np.abs(y)


def unit(x: tuple, scale: float) -> tuple:
    value, bound = x
    squares = (value ** 2).sum(-1, keepdims=True) + 1e-6
    factor = scale / np.sqrt(squares)
    y = value * factor
    through_root = np.abs(y) * (np.abs(value) * bound).sum(-1, keepdims=True) / squares
    return y, bound * factor + through_root + np.abs(y) * (value.shape[-1] / 32 + 8) * U


def gates(a: np.ndarray, b: np.ndarray, a_log: np.ndarray, dt_bias: np.ndarray) -> tuple:
    total = a + dt_bias
    rate = np.exp(a_log)
    power = rate * np.logaddexp(total, 0)
    decay = np.exp(-power)
    exponent = (11 * power + rate / (1 + np.exp(-total)) * np.abs(total)) * U
    update = 1 / (1 + np.exp(-b))
    return (decay, decay * (exponent + 2 * U)), (update, 5 * U * update)


def recurrence(q: tuple, k: tuple, v: tuple, decay: tuple, update: tuple) -> dict:
    """q, k [tokens, heads, key_dim], v [tokens, heads, value_dim], decay, update [tokens, heads]."""
    tokens, heads, key_dim = k[0].shape
    state = np.zeros((heads, v[0].shape[2], key_dim))
    error = np.zeros_like(state)
    outs, out_bounds = [], []
    for t in range(tokens):
        kt, ek = k[0][t][:, None, :], k[1][t][:, None, :]
        qt, eq = q[0][t][:, None, :], q[1][t][:, None, :]
        dt, ed = decay[0][t][:, None], decay[1][t][:, None]
        ut, eu = update[0][t][:, None], update[1][t][:, None]
        dot, size = (state * kt).sum(-1), np.abs(state * kt).sum(-1)
        held = dt * dot
        held_bound = (dt * (error * np.abs(kt) + np.abs(state) * ek).sum(-1) + ed * np.abs(dot)
                      + sum_bound(key_dim) * dt * size)
        rest = v[0][t] - held
        delta = rest * ut
        delta_bound = (v[1][t] + held_bound) * ut + np.abs(rest) * eu + 3 * U * np.abs(delta)
        dt, ed, delta, delta_bound = dt[..., None], ed[..., None], delta[..., None], delta_bound[..., None]
        error = (error * dt + np.abs(state) * ed + ek * np.abs(delta) + np.abs(kt) * delta_bound
                 + 2 * U * (np.abs(state) * dt + np.abs(kt * delta)))
        state = state * dt + kt * delta
        outs.append((state * qt).sum(-1))
        out_bounds.append((error * np.abs(qt) + np.abs(state) * eq).sum(-1)
                          + sum_bound(key_dim) * np.abs(state * qt).sum(-1))
    return {"out": np.stack(outs), "out_bound": 1.05 * np.stack(out_bounds), "state": state, "state_bound": 1.05 * error}


def exact_layer(sizes: dict, inputs: dict) -> dict:
    given = {key: np.array(value).astype(np.float64) for key, value in inputs.items()}
    tokens, key_heads, heads = len(given["mixed"]), sizes["key_heads"], sizes["value_heads"]
    keys = key_heads * sizes["key_dim"]
    mixed = convolution(given["mixed"], given["conv_weight"])

    def part(begin: int, end: int, count: int) -> tuple:
        return tuple(x[:, begin:end].reshape(tokens, count, -1) for x in mixed)

    q = unit(part(0, keys, key_heads), sizes["key_dim"] ** -0.5)
    k = unit(part(keys, 2 * keys, key_heads), 1.0)
    q, k = (tuple(np.repeat(x, heads // key_heads, 1) for x in pair) for pair in (q, k))
    v = part(2 * keys, mixed[0].shape[1], heads)
    result = recurrence(q, k, v, *gates(given["a"], given["b"], given["a_log"], given["dt_bias"]))
    # A bound that says nothing would pass anything.
    assert result["out_bound"].max() < 1e-3 * np.abs(result["out"]).max()
    return result
