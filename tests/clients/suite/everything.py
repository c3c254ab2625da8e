"""A conformant server on the Python SDK with what the official suite's server scenarios ask for: `everything.py` listens on a
loopback port and prints it. Names and texts of its tools, prompts and resources are the suite's."""

import json
import socket

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

bus = InMemorySubscriptionBus()


def text(words):
    return {"type": "text", "text": words}


def image():
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri, words, mime="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


def form(message, **properties):
    """An input request that shows the user a form."""
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
    params = {"mode": "form", "message": message, "requestedSchema": schema | {"required": list(properties)}}
    return {"method": "elicitation/create", "params": params}


def sample(question):
    """An input request that asks the client's model."""
    params = {"messages": [{"role": "user", "content": text(question)}], "maxTokens": 100}
    return {"method": "sampling/createMessage", "params": params}


ROOTS = {"method": "roots/list", "params": {}}


def asking(state=None, **requests):
    """The result that asks the caller for more."""
    return {"resultType": "input_required", "inputRequests": requests} | ({"requestState": state} if state else {})


def told(params, key, member="content"):
    """What the caller answered under `key`; nothing when it did not, or with something that does not fit the question."""
    answer = (params.input_responses or {}).get(key)
    answer = answer and (answer if isinstance(answer, dict) else answer.model_dump(by_alias=True, exclude_none=True))
    return answer.get(member) if answer else None


class Ask:
    """A tool that asks once, and greets with what it was told. `state`: the words that it must be told back."""

    def __init__(self, state=None, **requests):
        self.state, self.requests = state, requests

    async def __call__(self, ctx, params):
        members = {"elicitation/create": "content", "roots/list": "roots", "sampling/createMessage": "content"}
        answers = [told(params, key, members[request["method"]]) for key, request in self.requests.items()]
        if any(answer is None for answer in answers) or params.request_state != self.state:
            return asking(self.state, **self.requests)
        return {"content": [text(f"{self.state or 'Hello'}: {json.dumps(answers, default=str)}")]}


async def progress(ctx, params):
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100)
    return {"content": [text("done")]}


async def logging(ctx, params):
    await ctx.session.send_log_message("info", "working", related_request_id=ctx.request_id)
    return {"content": [text("done")]}


async def sampling(ctx, params):
    if "sampling" not in ctx.params["_meta"].get(CAPABILITIES, {}):
        raise MCPError(-32021, "this tool needs a model", {"requiredCapabilities": {"sampling": {}}})
    return asking(question=sample("What is the capital of France?"))


async def capabilities(ctx, params):
    declared = ctx.params["_meta"].get(CAPABILITIES, {})
    known = {"elicitation": form("Who are you?", name="string"), "sampling": sample("Who are you?"), "roots": ROOTS}
    return asking(**{name: request for name, request in known.items() if name in declared})


async def rounds(ctx, params):
    if params.request_state == "two" and told(params, "step2"):
        return {"content": [text("done")]}
    if params.request_state in ("one", "two") and (told(params, "step1") or params.request_state == "two"):
        return asking("two", step2=form("Step 2: What is your favorite color?", color="string"))
    return asking("one", step1=form("Step 1: What is your name?", name="string"))


async def tools_changed(ctx, params):
    await bus.publish(ToolsListChanged())
    return {"content": [text("changed")]}


async def prompts_changed(ctx, params):
    await bus.publish(PromptsListChanged())
    return {"content": [text("changed")]}


def saying(*content, **more):
    async def tool(ctx, params):
        return {"content": list(content)} | more

    return tool


CONFIRM = form("Please confirm", ok="boolean")
NAME = form("What is your name?", name="string")
NAMED_IN_A_HEADER = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
MODERN = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS = {
    "test_simple_text": saying(text("This is a simple text response for testing.")),
    "test_image_content": saying(image()),
    "test_audio_content": saying({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}),
    "test_embedded_resource": saying(resource("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": saying(
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_error_handling": saying(text("This tool intentionally returns an error for testing"), isError=True),
    "test_tool_with_progress": progress,
    "test_logging_tool": logging,
    "test_missing_capability": sampling,
    "test_streaming_elicitation": Ask(user_name=NAME),
    "test_trigger_tool_change": tools_changed,
    "test_trigger_prompt_change": prompts_changed,
    "test_input_required_result_elicitation": Ask(user_name=NAME),
    "test_input_required_result_sampling": Ask(capital_question=sample("What is the capital of France?")),
    "test_input_required_result_list_roots": Ask(client_roots=ROOTS),
    "test_input_required_result_request_state": Ask("state-ok", confirm=CONFIRM),
    "test_input_required_result_multiple_inputs": Ask(
        "several", user_name=NAME, greeting=sample("Generate a greeting"), client_roots=ROOTS
    ),
    "test_input_required_result_tampered_state": Ask("sealed", confirm=CONFIRM),
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_capabilities": capabilities,
    "test_x_mcp_header": saying(text("done")),
    "json_schema_2020_12_tool": saying(text("done")),
}
SCHEMAS = {"test_x_mcp_header": NAMED_IN_A_HEADER, "json_schema_2020_12_tool": MODERN}

PROMPTS = {
    "test_simple_prompt": lambda said: [text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": lambda said: [
        text(f"Prompt with arguments: arg1='{said['arg1']}', arg2='{said['arg2']}'")
    ],
    "test_prompt_with_embedded_resource": lambda said: [
        resource(said["resourceUri"], "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    ],
    "test_prompt_with_image": lambda said: [image(), text("Please analyze the image above.")],
    "test_input_required_result_prompt": None,
}
ARGUMENTS = {"test_prompt_with_arguments": ["arg1", "arg2"], "test_prompt_with_embedded_resource": ["resourceUri"]}

RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}


async def list_tools(ctx, params):
    schema = {"type": "object", "properties": {}}
    tools = [{"name": name, "description": name, "inputSchema": SCHEMAS.get(name, schema)} for name in TOOLS]
    return types.ListToolsResult.model_validate({"tools": tools, "ttlMs": 60000, "cacheScope": "public"})


async def list_prompts(ctx, params):
    def arguments(name):
        return [{"name": argument, "required": True} for argument in ARGUMENTS.get(name, [])]

    prompts = [{"name": name, "description": name, "arguments": arguments(name)} for name in PROMPTS]
    return types.ListPromptsResult.model_validate({"prompts": prompts, "ttlMs": 60000, "cacheScope": "public"})


async def list_resources(ctx, params):
    resources = [
        {"uri": uri, "name": uri.removeprefix("test://"), "description": uri, "mimeType": known["mimeType"]}
        for uri, known in RESOURCES.items()
    ]
    return types.ListResourcesResult.model_validate({"resources": resources, "ttlMs": 60000, "cacheScope": "public"})


async def list_templates(ctx, params):
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    told = {"resourceTemplates": [template], "ttlMs": 60000, "cacheScope": "public"}
    return types.ListResourceTemplatesResult.model_validate(told)


async def call_tool(ctx, params):
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(-32602, f"Unknown tool: {params.name}")
    result = await tool(ctx, params)
    kind = types.InputRequiredResult if result.get("resultType") == "input_required" else types.CallToolResult
    return kind.model_validate(result)


async def get_prompt(ctx, params):
    if params.name not in PROMPTS:
        raise MCPError(-32602, f"Unknown prompt: {params.name}")
    make = PROMPTS[params.name]
    if make is None:
        context = told(params, "user_context")
        if context is None:
            question = asking(user_context=form("What context should the prompt use?", context="string"))
            return types.InputRequiredResult.model_validate(question)
        make = lambda said: [text(f"Use {json.dumps(context)}.")]  # noqa: E731
    messages = [{"role": "user", "content": content} for content in make(params.arguments or {})]
    return types.GetPromptResult.model_validate({"messages": messages})


async def read_resource(ctx, params):
    known = RESOURCES.get(params.uri)
    within = params.uri.removeprefix("test://template/").removesuffix("/data")
    if known is None and params.uri == f"test://template/{within}/data":
        said = {"id": within, "templateTest": True, "data": f"Data for ID: {within}"}
        known = {"mimeType": "application/json", "text": json.dumps(said)}
    if known is None:
        raise MCPError(-32602, "Resource not found", {"uri": params.uri})
    contents = [{"uri": params.uri} | known]
    return types.ReadResourceResult.model_validate({"contents": contents, "ttlMs": 60000, "cacheScope": "private"})


async def complete(ctx, params):
    return types.CompleteResult.model_validate({"completion": {"values": ["test"], "total": 1, "hasMore": False}})


server = Server(
    "everything",
    version="1",
    instructions="For the conformance suite.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_completion=complete,
    on_subscriptions_listen=ListenHandler(bus),
)
server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="everything"))

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
