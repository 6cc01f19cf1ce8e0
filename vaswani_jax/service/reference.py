"""Show the description of an API as one HTML page, without scripts or a network."""

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from vaswani_jax.pages.html import content_policy

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem;
  padding: 1rem; color-scheme: light dark; }
code, pre { font-family: ui-monospace, monospace; font-size: 13px; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #8886; border-radius: 4px; }
h2 { margin-top: 2.2rem; border-top: 1px solid #8886; padding-top: .8rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; }
tr { border-bottom: 1px solid #8884; }
"""
POLICY = f"{content_policy(style=STYLE)}; frame-ancestors 'none'"


def render(api: Mapping[str, Any]) -> str:
    """Return the HTML of an OpenAPI description."""
    title = html.escape(api["info"]["title"])
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{STYLE}</style>",
        f"<h1>{title}</h1><p>{html.escape(api['info'].get('description', ''))}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>',
    ]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            parts += _operation(f"{method.upper()} {path}", operation, api)
    schemas = api.get("components", {}).get("schemas", {})
    for name, schema in schemas.items():
        parts.append(f'<h2 id="{html.escape(name)}">{html.escape(name)}</h2>')
        parts.append(f"<p>{_first_line(schema)}</p>")
        parts.append(_fields(schema))
    return "\n".join(parts) + "</html>\n"


def _operation(
    heading: str, operation: Mapping[str, Any], api: Mapping[str, Any]
) -> Iterator[str]:
    yield f"<h2><code>{html.escape(heading)}</code></h2>"
    yield f"<p>{html.escape(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        yield _table(
            [
                (
                    parameter["name"],
                    _kind(parameter["schema"]),
                    parameter.get("description", ""),
                )
                for parameter in parameters
            ]
        )
    last_schema = None
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        yield f"<p>Body, <code>{html.escape(kind)}</code>: {_kind(schema)}</p>"
        # Without a name there is nothing to link to. A form has the fields of the JSON.
        if "properties" in schema and schema != last_schema:
            yield _fields(schema)
        last_schema = schema
        for example in _examples(schema, api):
            yield f"<pre>{html.escape(json.dumps(example, ensure_ascii=False))}</pre>"
    rows = []
    for status, answer in operation.get("responses", {}).items():
        kinds = [
            _kind(content.get("schema", {}))
            for content in answer.get("content", {}).values()
        ]
        rows.append((status, ", ".join(filter(None, kinds)), answer["description"]))
    yield _table(rows)


def _examples(schema: Mapping[str, Any], api: Mapping[str, Any]) -> list[Any]:
    if name := _name(schema):
        schema = api["components"]["schemas"][name]
    return schema.get("examples", [schema["example"]] if "example" in schema else [])


def _fields(schema: Mapping[str, Any]) -> str:
    return _table(
        [
            (
                name + ("" if name in schema.get("required", []) else "?"),
                _kind(field),
                field.get("description", ""),
            )
            for name, field in schema.get("properties", {}).items()
        ]
    )


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Return a table of names, kinds (which are HTML) and descriptions."""
    lines = [
        f"<tr><td><code>{html.escape(name)}</code><td>{kind}<td>{html.escape(text)}"
        for name, kind, text in rows
    ]
    return f"<table>{''.join(lines)}</table>"


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the HTML of the type of a value."""
    if name := _name(schema):
        return f'<a href="#{html.escape(name)}">{html.escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {})) or 'values'}"
    return html.escape(str(schema.get("type", "")))


def _name(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _first_line(schema: Mapping[str, Any]) -> str:
    return html.escape(str(schema.get("description", "")).partition("\n")[0])
