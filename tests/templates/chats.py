"""Conversations that every template is rendered with. Each is the keyword arguments of one render."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Weather for a place, "now" & later <b>',
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Città or ZIP — é"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "details": {"type": "object", "properties": {"wind": {"type": "boolean"}}, "required": ["wind"]},
                "hours": {"type": "array", "items": {"type": "number"}},
            },
            "required": ["place"],
        },
    },
}
COMPARE = {
    "type": "function",
    "function": {
        "name": "cmp",
        "description": "a < b & c > d — it's \"q\" / é",
        "parameters": {
            "type": "object",
            "properties": {
                "z": {"type": "number", "description": "first"},
                "a": {"type": "array", "description": "second", "items": {"type": "string"}},
            },
        },
        "strict": True,
    },
}
NO_PARAMETERS = {
    "type": "function",
    "function": {"name": "ping", "description": "", "parameters": {"type": "object", "properties": {}}},
}
TOOLS = [WEATHER, COMPARE, NO_PARAMETERS]


def user(content):
    return {"role": "user", "content": content}


def system(content):
    return {"role": "system", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def call(name, arguments, call_id="call00001"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(content, name="get_weather", call_id="call00001"):
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


ARGUMENTS = {"place": "Århus", "days": 3, "hours": [1, 2.0, 1e-5], "details": {"wind": True}, "unit": None}
CALLED = assistant("", tool_calls=[call("get_weather", ARGUMENTS)])
PARALLEL = assistant(
    "Both at once.",
    tool_calls=[
        call("get_weather", {"place": "Oslo"}, "call00001"),
        call("cmp", {"z": -1.5, "a": ["x", 'quo"te']}, "call00002"),
    ],
)

CHATS = {
    "user": {"messages": [user("Why is the sky blue?")]},
    "system_user": {"messages": [system("You are terse."), user("Hi")]},
    "multi_turn": {
        "messages": [
            system("You are a pirate."),
            user("Hello"),
            assistant("Ahoy!"),
            user("  How are\nyou?  "),
            assistant("Fine.\n"),
            user("Bye"),
        ]
    },
    "no_generation_prompt": {
        "messages": [user("Hello"), assistant("Hi there")],
        "add_generation_prompt": False,
    },
    "assistant_last": {"messages": [user("Count to 3"), assistant("1, 2,")]},
    "tools": {"messages": [user("Weather in Århus?")], "tools": TOOLS},
    "system_tools": {"messages": [system("Use tools."), user("Weather?")], "tools": TOOLS},
    "tool_result": {
        "messages": [user("Weather?"), CALLED, tool('{"temp": 21.5, "sky": "clear"}')],
        "tools": TOOLS,
    },
    "tool_result_then_answer": {
        "messages": [user("Weather?"), CALLED, tool("21.5"), assistant("It is 21.5 degrees."), user("And tomorrow?")],
        "tools": TOOLS,
    },
    "parallel_calls": {
        "messages": [
            user("Both, please"),
            PARALLEL,
            tool("sunny"),
            tool("[1, 2]", "cmp", "call00002"),
        ],
        "tools": TOOLS,
    },
    "null_content_call": {
        "messages": [
            system("S"),
            user("Go"),
            {"role": "assistant", "content": None, "tool_calls": [call("ping", {})]},
            tool("pong", "ping"),
            assistant("Done."),
            user("Again"),
        ],
        "tools": [NO_PARAMETERS],
    },
    "no_content_key_call": {
        "messages": [user("Go"), {"role": "assistant", "tool_calls": [call("ping", {})]}, tool("pong", "ping")],
        "tools": [NO_PARAMETERS],
    },
    "string_arguments": {
        "messages": [
            user("Go"),
            assistant("", tool_calls=[call("get_weather", '{"place": "Oslo", "days": 2}')]),
            tool("rain"),
        ],
        "tools": [WEATHER],
    },
    "array_content": {
        "messages": [
            system([{"type": "text", "text": "Be brief."}]),
            user([{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]),
        ]
    },
    "array_tool_result": {
        "messages": [
            user("Go"),
            CALLED,
            {"role": "tool", "tool_call_id": "call00001", "content": [{"type": "text", "text": "rain"}]},
        ],
        "tools": [WEATHER],
    },
    "image_content": {
        "messages": [user([{"type": "image"}, {"type": "text", "text": "What is this?"}])],
    },
    "unicode": {
        "messages": [
            system("Antwoord in het Nederlands — “graag” 😸"),
            user("日本語のテキスト, e\u0301, \u00a0, family 👨‍👩‍👧‍👦\u200b\u2028 end"),
            assistant("はい。\u0007\tok"),
            user("<|im_end|>\n<script>&amp;'\"\\"),
        ]
    },
    "empty_content": {"messages": [system(""), user(""), assistant(""), user("x")]},
    "thinking": {
        "messages": [
            user("2+2?"),
            assistant("4", reasoning_content="Two and two.\n"),
            user("3+3?"),
            assistant("", reasoning_content="Call it.", tool_calls=[call("ping", {})]),
            tool("pong", "ping"),
        ],
        "tools": [NO_PARAMETERS],
    },
    "thinking_inline": {
        "messages": [user("2+2?"), assistant("<think>\nhm\n</think>\n\n4"), user("Sure?")],
    },
    "thinking_off": {"messages": [user("Hi")], "extra": {"enable_thinking": False, "thinking": False}},
    "thinking_on": {
        "messages": [system("S"), user("Hi")],
        "extra": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    },
    "two_users": {"messages": [user("One"), user("Two")]},
    "late_system": {"messages": [system("A"), user("B"), system("C"), user("D")]},
    "assistant_first": {"messages": [assistant("Hello, I begin."), user("Hi")]},
    "developer": {"messages": [{"role": "developer", "content": "Be kind."}, user("Hi")]},
    "unknown_role": {"messages": [{"role": "banana", "content": "?"}, user("Hi")]},
    "documents": {
        "messages": [user("Summarise")],
        "documents": [{"title": "One", "text": "First text", "doc_id": 1}, {"title": "Two", "text": "Zweiter"}],
    },
    "empty": {"messages": []},
}
