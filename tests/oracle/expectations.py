"""What mlx-lm answers: logits of several forward plans over one token sequence, and greedy tokens."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache

# Tokens of the longest forward -> name -> tokens per forward. One cache lives through each plan, so the plans reach a ring that grows, one left oversize
# by a block, one that wrapped, and a block that arrives after the wrap.
def plans(prompt: int) -> dict[str, list[int]]:
    return {
        "whole": [prompt],
        "steps": [prompt] + [1] * 12,
        "split": [9, prompt - 9] + [1] * 5,
        "stepwise": [1] * max(33, prompt),
        "turns": [prompt] + [1] * 6 + [5] + [1] * 3,
        "short_first": [3, 4, 6, 2] + [1] * 8,
    }


class Degenerate(Exception):
    """Random weights whose answers would hardly depend on the engine; another seed is tried."""


def token_sequence(count: int, vocabulary: int, rng: np.random.Generator) -> list[int]:
    return [int(token) for token in rng.integers(0, vocabulary, count)]


def plan_logits(model: nn.Module, tokens: list[int], spans: list[int]) -> mx.array:
    """[sum of spans, vocabulary]: the logits of every forward of a plan, one under the other."""
    cache = make_prompt_cache(model)
    parts, begin = [], 0
    for span in spans:
        logits = model(mx.array([tokens[begin : begin + span]]), cache=cache)[0]
        mx.eval(logits)
        parts.append(logits)
        begin += span
    return mx.concatenate(parts, axis=0)


def greedy(model: nn.Module, prompt: list[int], count: int) -> list[int]:
    """mlx-lm's own generation loop; end tokens do not stop it."""
    return [int(token) for token, _ in generate_step(mx.array(prompt), model, max_tokens=count)]


def expect(model: nn.Module, vocabulary: int, rng: np.random.Generator, case) -> tuple[dict, dict]:
    """Tensors (plan name -> logits) and the description that the C++ side reads. `case`: a Case or GgufCase."""
    chosen = plans(case.prompt)
    tokens = token_sequence(max(sum(spans) for spans in chosen.values()), vocabulary, rng)
    tensors = {name: plan_logits(model, tokens, spans) for name, spans in chosen.items()}
    mx.eval(tensors)
    prompt = token_sequence(case.greedy_prompt, vocabulary, rng)
    description = {
        "tokens": tokens,
        "plans": chosen,
        "greedy_prompt": prompt,
        "greedy_tokens": greedy(model, prompt, case.greedy_tokens),
    }
    _check_alive(tensors, description)
    return tensors, description


def _check_alive(tensors: dict, description: dict) -> None:
    """A golden that any engine would meet proves nothing: refuse flat logits and one-token answers."""
    logits = np.array(tensors["whole"].astype(mx.float32))
    if not np.isfinite(logits).all() or logits.std() < 0.05:
        raise Degenerate(f"logits hardly vary or are not finite: deviation {logits.std()}")
    if len(set(description["greedy_tokens"])) < 4:
        raise Degenerate(f"the greedy answer repeats itself: {description['greedy_tokens']}")
