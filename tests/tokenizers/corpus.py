"""Texts that find tokenizer faults, and a small corpus to train on."""

import random

TRAINING = [
    "The quick brown fox jumps over the lazy dog. I'll say it's 12345 times, don't you think?",
    "def f(x):\n\treturn x + 1\n\nif (x) {\n  y = \"z\";\n}\n",
    "Ein süßes Mädchen läuft über die Straße; für 3,50 € gibt's Brötchen.",
    "日本語のテキストと中文文本。こんにちは世界、你好世界！",
    "Привет, мир! Как дела? 1234567890",
    "안녕하세요 세계 — café naïve résumé",
    "emoji 😸😀👍🏽 and ZWJ 👨‍👩‍👧‍👦 done",
    "aaaa bbbb aaaa    spaces     and\n\n\nlines\r\nwindows\ttabs",
    "HelloWorld camelCase XMLHttpRequest snake_case_name SCREAMING_CASE",
    "the cat and the dog and the bird and the fish were in the house",
] * 4

TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    "hello",
    " hello",
    "  hello  ",
    "Hello, world!",
    "I'LL pay 12345",
    "a   \n\n  b\n",
    "cafe\u0301s ok",
    "x\u00a0y",
    "\u0661\u0662\u0663\u0664",
    "don’t",
    "if(x){\n\treturn;\n}",
    "👨‍👩‍👧‍👦!",
    "½ cup",
    "end  ",
    "\u212b ﬁ \u1100\u1161",
    "日本語 中文 한국어 ไทย हिन्दी עברית",
    "one\ttwo\r\nthree\rfour",
    "1 22 333 4444 55555 1,234,567.89",
    "HTTPServerError CamelCase iPhone McDonald's",
    "https://example.org/a?b=c&d=%20#frag",
    "<|im_start|>user\nhi<|im_end|>",
    "x<|im_end|>y <|im_end|> z",
    "</s><s>hi</s> hi",
    "<0x41> <unk> ▁hi ▁",
    "\u0000\u0001\u007f\u0080",
    "\ud7ff\ue000\ufffd\U0010ffff",
    "a" * 300,
    " " * 70 + "x",
    "\n" * 40,
    "αβγ ΑΒΓ ÀÉÎ straße",
    "e\u0301\u0302\u0303 combining",
    "𝒜𝓁𝓅𝒽𝒶 𐍈",
    "!?!?!... --- *** ===",
    "' 's 't 're 'S 'LL",
    "foo  bar   baz    qux",
    "\u3000全角\u3000スペース",
    "Ünïcödé\u2028line\u2029para\u0085nel",
]


def random_texts(seed, count):
    rng = random.Random(seed)
    pools = [
        "abcdefghij ABC  ",
        "0123456789 .,",
        " \t\n\r\u00a0\u3000",
        "éüßñçø",
        "日本語中文字",
        "😸👍🏽‍\u200d",
        "'\"!?-_(){}[]<>/\\|",
        "\u0301\u0302\u093f\u0e34",
        "the and ing tion",
    ]
    texts = []
    for _ in range(count):
        runs = [rng.choice(pools) for _ in range(rng.randint(1, 8))]
        texts.append("".join("".join(rng.choice(p) for _ in range(rng.randint(1, 6))) for p in runs))
    return texts
