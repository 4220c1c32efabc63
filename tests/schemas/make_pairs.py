"""Random JSON Schemas with texts that satisfy them and texts that do not, told apart by a validator written for this test
(and, where the package jsonschema is installed, by that one too: the two must agree).

usage: make_pairs.py OUT.json [COUNT] [SEED]
Texts have the properties of a schema in its order, as grammars write them; everything else is up to chance.
"""

import json
import random
import re
import sys

WORDS = ["", "a", "ab", "abc", "b-1", "x y", "é", "日本語", 'q"t', "back\\slash", "2024-02-29", "12:00:00Z", "tab\t"]
NAMES = ["a", "b", "c", "kind", "x/y", "ü"]


def resolve(root, schema):
    while isinstance(schema, dict) and "$ref" in schema:
        node = root
        for part in schema["$ref"].lstrip("#").split("/")[1:]:
            node = node[part.replace("~1", "/").replace("~0", "~")]
        schema = node
    return schema


def type_of(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", list: "array", dict: "object"}[type(value)]


def has_type(value, name):
    if name == "integer":
        return type_of(value) == "number" and float(value).is_integer()
    return type_of(value) == name


def same(a, b):
    return type_of(a) == type_of(b) and a == b


def valid(root, schema, value):
    schema = resolve(root, schema)
    if isinstance(schema, bool):
        return schema
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    checks = [
        not types or any(has_type(value, one) for one in types),
        "const" not in schema or same(value, schema["const"]),
        "enum" not in schema or any(same(value, one) for one in schema["enum"]),
        all(valid(root, part, value) for part in schema.get("allOf", [])),
        "anyOf" not in schema or any(valid(root, part, value) for part in schema["anyOf"]),
        "oneOf" not in schema or sum(valid(root, part, value) for part in schema["oneOf"]) == 1,
    ]
    by_type = {"number": valid_number, "string": valid_string, "array": valid_array, "object": valid_object}
    check = by_type.get(type_of(value))
    return all(checks) and (check is None or check(root, schema, value))


def valid_number(_, schema, value):
    return (
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
        and ("multipleOf" not in schema or value % schema["multipleOf"] == 0)
    )


def valid_string(_, schema, value):
    return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) and (
        "pattern" not in schema or re.search(schema["pattern"], value, re.ASCII) is not None
    )


def valid_array(root, schema, value):
    prefix = schema.get("prefixItems", [])
    pairs = list(zip(prefix, value)) + [(schema.get("items", True), item) for item in value[len(prefix) :]]
    return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)) and all(
        valid(root, part, item) for part, item in pairs
    )


def valid_object(root, schema, value):
    named = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", [])) and all(
        valid(root, named.get(name, rest), item) for name, item in value.items()
    )


def make_schema(dice, depth, names):
    kinds = ["integer", "number", "string", "const", "enum", "null", "boolean", "types"]
    if depth > 0:
        kinds += ["array", "tuple", "object", "object", "anyOf", "oneOf", "allOf"] + (["ref"] if names else [])
    return MAKERS[dice.choice(kinds)](dice, depth - 1, names)


def make_integer(dice, *_):
    schema = {"type": "integer"}
    if dice.random() < 0.6:
        schema["minimum"] = dice.randint(-120, 30)
    if dice.random() < 0.6:
        schema[dice.choice(["maximum", "exclusiveMaximum"])] = dice.randint(31, 2000)
    if dice.random() < 0.3:
        schema["multipleOf"] = dice.choice([2, 3, 5, 10])
    return schema


def make_number(dice, *_):
    low, high = dice.choice([(-1.5, 3), (0, 100), (2.25, 2.5)])
    return {"type": "number", dice.choice(["minimum", "exclusiveMinimum"]): low, "maximum": high}


def make_string(dice, *_):
    schema = {"type": "string"}
    kind = dice.randrange(4)
    if kind == 0:
        schema["minLength"] = dice.randint(0, 2)
        schema["maxLength"] = dice.randint(2, 4)
    if kind == 1:
        schema["pattern"] = dice.choice(["^a", "b", r"^\w{1,3}$", r"^\d{4}-\d\d", r'^[^"\\]*$', "^(a|b)?c*$", "^.{3}$", r"\S"])
    if kind == 2:
        schema.update(pattern="^[a-c]*$", maxLength=2)
    return schema


def make_const(dice, *_):
    return {"const": dice.choice([1, "a", None, True, [1, "x"], {"b": 1, "a": 2}, 'q"t'])}


def make_enum(dice, *_):
    return {"enum": dice.sample([1, 2, 30, "a", "ab", None, False, ["x"], {"k": "v"}], 3)}


def make_types(dice, *_):
    return {"type": dice.sample(["integer", "string", "null", "boolean"], 2)}


def make_array(dice, depth, names):
    schema = {"type": "array", "items": make_schema(dice, depth, names)}
    if dice.random() < 0.5:
        schema["minItems"] = dice.randint(0, 2)
    if dice.random() < 0.5:
        schema["maxItems"] = dice.randint(2, 4)
    return schema


def make_tuple(dice, depth, names):
    prefix = [make_schema(dice, depth, names) for _ in range(dice.randint(1, 2))]
    return {"type": "array", "prefixItems": prefix, "items": False, "minItems": len(prefix)}


def make_object(dice, depth, names):
    chosen = dice.sample(NAMES, dice.randint(1, 4))
    schema = {"type": "object", "properties": {name: make_schema(dice, depth, names) for name in chosen}}
    schema["required"] = [name for name in chosen if dice.random() < 0.6]
    if dice.random() < 0.7:
        schema["additionalProperties"] = dice.choice([False, False, {"type": "integer"}])
    return schema


def make_any_of(dice, depth, names):
    return {"anyOf": [make_schema(dice, depth, names) for _ in range(dice.randint(2, 3))]}


def make_one_of(dice, depth, names):
    def option(kind):
        rest = make_schema(dice, depth, names)
        return {"type": "object", "properties": {"kind": {"const": kind}, "v": rest}, "required": ["kind", "v"]}

    return {"oneOf": [option("cat"), option("dog"), {"type": "integer", "maximum": 9}, {"type": "null"}]}


def make_all_of(dice, *_):
    return {"allOf": [make_integer(dice), {"maximum": 25}, {"exclusiveMinimum": -40}]}


def make_ref(dice, _, names):
    return {"$ref": "#/$defs/" + dice.choice(names)}


MAKERS = {
    "integer": make_integer, "number": make_number, "string": make_string, "const": make_const, "enum": make_enum,
    "null": lambda *_: {"type": "null"}, "boolean": lambda *_: {"type": "boolean"}, "types": make_types,
    "array": make_array, "tuple": make_tuple, "object": make_object, "anyOf": make_any_of, "oneOf": make_one_of,
    "allOf": make_all_of, "ref": make_ref,
}  # fmt: skip


def instance(dice, root, schema, depth):
    """A value that has a chance."""
    schema = resolve(root, schema)
    if depth < 0 or isinstance(schema, bool) or dice.random() < 0.04:
        return anything(dice, 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return instance(dice, root, dice.choice(schema[word]), depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema.get("type", "null")
    kind = kind if isinstance(kind, str) else dice.choice(kind)
    if kind == "array":
        prefix = [instance(dice, root, part, depth - 1) for part in schema.get("prefixItems", [])]
        count = dice.randint(0, 3) if schema.get("items", True) is not False else dice.choice([0, 0, 0, 1])
        return prefix + [instance(dice, root, schema.get("items", True), depth - 1) for _ in range(count)]
    if kind == "object":
        made = {}
        for name, part in schema.get("properties", {}).items():
            if dice.random() < (0.97 if name in schema.get("required", []) else 0.5):
                made[name] = instance(dice, root, part, depth - 1)
        if dice.random() < 0.2:
            made["extra"] = dice.choice([7, "s"])
        return made
    low = int(schema.get("minimum", schema.get("exclusiveMinimum", -5)))
    numbers = [low, low + 1, low + 5, 0, 12, 30, int(schema.get("maximum", schema.get("exclusiveMaximum", 50)))]
    return {"null": None, "boolean": dice.random() < 0.5, "integer": dice.choice(numbers),
            "number": dice.choice(numbers + [0.5, 2.25, 2.375, 99.875]), "string": dice.choice(WORDS)}[kind]  # fmt: skip


def anything(dice, depth):
    kinds = [None, True, dice.randint(-200, 3000), dice.choice(WORDS), 0.25]
    if depth > 0:
        kinds += [[anything(dice, depth - 1)], {dice.choice(NAMES): anything(dice, depth - 1)}, {}, []]
    return dice.choice(kinds)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def make_case(dice):
    names = ["one", "two"]
    root = make_schema(dice, 3, names)
    root["$defs"] = {name: make_schema(dice, 1, []) for name in names}
    texts = {True: set(), False: set()}
    for _ in range(60):
        value = instance(dice, root, root, 5)
        texts[valid(root, root, value)].add(compact(value))
    return {"schema": root, "valid": sorted(texts[True])[:6], "invalid": sorted(texts[False])[:6]}


def check_with_jsonschema(case):
    try:
        import jsonschema
    except ImportError:
        return
    checker = jsonschema.Draft202012Validator(case["schema"])
    for expected in (True, False):
        for text in case["valid" if expected else "invalid"]:
            assert checker.is_valid(json.loads(text)) == expected, (case["schema"], text)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20260417
    dice = random.Random(seed)
    cases = []
    while len(cases) < count:
        case = make_case(dice)
        if case["valid"]:
            check_with_jsonschema(case)
            cases.append(case)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"seed": seed, "cases": cases}, out, ensure_ascii=False)
    print(f"{len(cases)} schemas, {sum(len(c['valid']) + len(c['invalid']) for c in cases)} texts, seed {seed}")


if __name__ == "__main__":
    main()
