"""The parts of our pages, in the look of the project (executions/page_look.py)."""

from typing import Any

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token, token_kwargs
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from harbor_refresh.executions.page_look import media, template_of

register = template.Library()


class PartNode(template.Node):
    def __init__(self, part: FilterExpression, values: dict[str, FilterExpression], content: NodeList) -> None:
        self._part = part
        self._values = values
        self._content = content

    def render(self, context: template.Context) -> Any:
        values = {name: one.resolve(context) for name, one in self._values.items()}
        with context.push(**values):
            children = self._content.render(context)
        if children:
            values["children"] = children
        request = getattr(context, "request", None)
        return render_to_string(template_of(self._part.resolve(context)), values, request=request)


@register.tag("part")
def do_part(parser: Parser, token: Token) -> PartNode:
    """{% part "card" with title=title %} the content {% endpart %}"""
    _, name, *words = token.split_contents()
    values = token_kwargs(words[1:], parser) if words[:1] == ["with"] else {}
    content = parser.parse(("endpart",))
    parser.delete_first_token()
    return PartNode(parser.compile_filter(name), values, content)


@register.simple_tag
def look_files() -> SafeString:
    """The styles and scripts of a page that is no list and no form, which name theirs by themselves."""
    return media().render()
