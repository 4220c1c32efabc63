"""Requests whose answers are compared over HTTP: greedy and drawn, chats and plain prompts, short and long."""

from server import Server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LONG = " ".join(f"Item {i} of the list is number {i * i % 97}." for i in range(40))


def chat(text: str, **fields):
    return CHAT, {"messages": [{"role": "user", "content": text}], "logprobs": True, "top_logprobs": 3, "max_tokens": 20, **fields}


def completion(text: str, **fields):
    return COMPLETIONS, {"prompt": text, "logprobs": 3, "max_tokens": 20, **fields}


REQUESTS = [
    chat("What is the capital of France?", temperature=0),
    chat("What is the capital of France? Answer in one word.", temperature=0),
    chat("Write a line about the sea.", temperature=0.9, seed=5),
    chat("Write a line about the sea.", temperature=0.9, seed=6, top_p=0.8),
    chat("Name a fruit.", temperature=1.2, seed=7, top_k=40, min_p=0.02, n=2),
    chat(LONG + " Which number has item 7?", temperature=0),
    completion("The quick brown fox", temperature=0),
    completion("The quick brown fox", temperature=0.7, seed=11, presence_penalty=0.5),
    completion(LONG, temperature=0, max_tokens=8),
    completion("1, 2, 3, 4,", temperature=0, stop=["9"], repetition_penalty=1.1),
]


def whole(server: Server, request):
    """[(text, logprobs, finish)] of every choice."""
    path, body = request
    return [(text_of(path, choice), choice["logprobs"], choice["finish_reason"]) for choice in server.post(path, body)["choices"]]


def text_of(path: str, choice: dict) -> str:
    return choice["message"]["content"] if path == CHAT else choice["text"]


def add(into: dict, more: dict) -> None:
    """Appends the lists of one logprobs object to those of another."""
    for key, value in more.items():
        if isinstance(value, list):
            into.setdefault(key, []).extend(value)
        else:
            into[key] = value


def streamed(server: Server, request):
    """The same from a stream."""
    path, body = request
    choices: dict[int, list] = {}
    for chunk in server.stream(path, body):
        for piece in chunk["choices"]:
            choice = choices.setdefault(piece["index"], ["", {}, None])
            choice[0] += (piece["delta"].get("content") or "") if path == CHAT else piece["text"]
            add(choice[1], piece["logprobs"] or {})
            choice[2] = piece["finish_reason"] or choice[2]
    return [tuple(choices[index]) for index in sorted(choices)]
