"""Parse the body of a request: JSON, bounded in size (DATA_UPLOAD_MAX_MEMORY_SIZE), in values and in nesting."""

import json
import re
from itertools import islice
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.parser import Parser

from harbor_refresh.executions.text import refuse_nesting

#: A value may take 3 bytes of a body and 240 bytes of memory. With this number of them in a full body of 10 MiB,
#: a value takes 20 bytes of it.
MAX_VALUES = 500_000
#: Each value but the outermost follows one of these marks.
MARKS = ",[{"
#: A mark outside of strings, with all that follows it until the next one. The repeats are possessive, and a string
#: without an end reaches to the end of the text. So each character is read once, whatever the text is.
MARK = re.compile(r'[,\[{](?:[^,\[{"]++|"(?:[^"\\]++|\\.)*+"?)*+', re.DOTALL)


class BoundedParser(Parser):
    """Ninja turns an error of `parse_body` into an HttpError 400, whose cause is told in the answer."""

    def parse_body(self, request: HttpRequest) -> Any:
        text = request.body.decode(json.detect_encoding(request.body), "surrogatepass")
        refuse_many_values(text)
        try:
            data = json.loads(text, parse_constant=_refuse)
            refuse_nesting(data)
        except RecursionError:
            raise ValueError("more nested levels than can be read") from None
        return data


def refuse_many_values(text: str) -> None:
    """Raise RequestDataTooBig for JSON of more than MAX_VALUES values, without making one of them.

    Most texts have so few marks that they are only counted. Otherwise the marks outside of strings count alone,
    because a message may be full of commas.
    """
    if sum(map(text.count, MARKS)) < MAX_VALUES:
        return
    if next(islice(MARK.finditer(text), MAX_VALUES - 1, None), None) is not None:
        raise RequestDataTooBig(f"a body takes at most {MAX_VALUES:,} values: send it in parts")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
