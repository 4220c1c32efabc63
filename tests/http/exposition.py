"""A strict reader of Prometheus' text format 0.0.4, with the rules that promtool's lint adds."""

import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def number(text: str) -> float:
    assert text in ("+Inf", "-Inf", "NaN") or re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text), text
    return float(text)


def labels_of(text: str | None) -> tuple:
    if not text:
        return ()
    labels, rest = [], text
    while rest:
        found = LABEL.match(rest)
        assert found, text
        labels.append(found.groups())
        rest = rest[found.end():]
        assert not rest or rest.startswith(","), text
        rest = rest[1:]
    names = [name for name, _ in labels]
    assert len(set(names)) == len(names) and labels, text
    return tuple(labels)


def family_of(name: str, kind: str, current: str) -> None:
    assert any(name == current + suffix for suffix in SUFFIXES[kind]), f"{name} is no sample of {current}"


def parse(text: str) -> dict[str, dict]:
    """{family: {"type", "samples": {(name, labels): value}}}; raises AssertionError for whatever a scrape would not take."""
    assert text.endswith("\n") and "\r" not in text and "\n\n" not in text
    families: dict[str, dict] = {}
    current = ""
    helped = None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, what = line[7:].partition(" ")
            assert NAME.fullmatch(name) and what and name not in families, line
            helped = name
        elif line.startswith("# TYPE "):
            current, _, kind = line[7:].partition(" ")
            assert current == helped and kind in SUFFIXES, line
            families[current] = {"type": kind, "samples": {}}
        else:
            found = SAMPLE.fullmatch(line)
            assert found and current, line
            family_of(found[1], families[current]["type"], current)
            key = (found[1], labels_of(found[2]))
            assert key not in families[current]["samples"], line
            families[current]["samples"][key] = number(found[3])
    for name, family in families.items():
        lint(name, family)
    return families


def lint(name: str, family: dict) -> None:
    kind = family["type"]
    assert name.endswith("_total") == (kind == "counter"), f"{name}: counters end in _total, others do not"
    assert not re.search(r"_(bucket|sum|count|milliseconds|ms|kb|mb|minutes)$", name), name
    for (_, labels), value in family["samples"].items():
        assert kind != "counter" or value >= 0, name
        assert "le" not in dict(labels) or kind == "histogram", name
    if kind == "histogram":
        check_histogram(name, family["samples"])


def check_histogram(name: str, samples: dict) -> None:
    series: dict[tuple, list] = {}
    for (sample, labels), value in samples.items():
        if sample == name + "_bucket":
            rest = tuple(pair for pair in labels if pair[0] != "le")
            series.setdefault(rest, []).append((number(dict(labels)["le"]), value))
    for rest, buckets in series.items():
        assert buckets == sorted(buckets), f"{name}{rest}: buckets fall"
        assert buckets[-1][0] == math.inf and buckets[-1][1] == samples[(name + "_count", rest)], f"{name}{rest}"
        assert (name + "_sum", rest) in samples, name


def value(families: dict, name: str, **labels) -> float:
    """The sum over the samples that have these labels; 0 without any."""
    family = next(family for key, family in families.items() if name in (key, key + "_count", key + "_sum"))
    return sum(v for (sample, found), v in family["samples"].items() if sample == name and labels.items() <= dict(found).items())
