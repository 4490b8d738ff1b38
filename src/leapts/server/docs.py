"""What the server offers, as a page for people."""

from collections.abc import Sequence
from html import escape

from leapts.server import problems
from leapts.server.description import Json


def docs_html(document: Json) -> str:
    """The description, to stand in the body of a page.

    Args:
        document: As OpenAPI.
    """
    parts = [
        f"<p>{escape(document['info']['description'])}</p>",
        '<p>For programs: <a href="/openapi.json">/openapi.json</a>. <a href="/">Forecast a table</a>.</p>',
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts += _operation(f"{method.upper()} {path}", operation)
    for name, schema in document["components"]["schemas"].items():
        parts.append(f'<h2 id="{escape(name)}">{escape(name)}</h2><p>{escape(schema.get("description", ""))}</p>')
        required = schema.get("required", ())
        fields = [
            (field + ("" if field in required else " (optional)"), _type_of(one), str(one.get("description", "")))
            for field, one in schema["properties"].items()
        ]
        parts.append(_table(("field", "type", "meaning"), fields))
    parts.append("<h2>Problems</h2>")
    for kind in problems.KINDS:
        parts.append(f'<p id="{kind.name}"><code>{kind.status} {kind.name}</code> {escape(kind.title)}.</p>')
    return "\n".join(parts)


def _operation(name: str, operation: Json) -> list[str]:
    parts = [f"<h2><code>{escape(name)}</code></h2><p>{escape(operation['summary'])}</p>"]
    parameters = [
        (str(one["name"]), _type_of(one["schema"]), str(one["description"])) for one in operation.get("parameters", ())
    ]
    parts.append(_table(("parameter", "type", "meaning"), parameters))
    if "requestBody" in operation:
        parts.append(f"<p>Takes {escape(_content(operation['requestBody']))}.</p>")
    answers = [(str(status), _content(one), str(one["description"])) for status, one in operation["responses"].items()]
    parts.append(_table(("status", "answer", "meaning"), answers))
    return parts


def _content(part: Json) -> str:
    return ", ".join(f"{media} ({_type_of(one['schema'])})" for media, one in part["content"].items())


def _type_of(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type_of(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type_of(schema['items'])}"
    inner = schema.get("additionalProperties")
    return f"object of {_type_of(inner)}" if isinstance(inner, dict) else str(schema.get("type", "anything"))


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
