"""The statements, one a file; the comment at the head of each is its contract.

Values are always bound, never put into the text.
"""

from functools import cache
from importlib.resources import files


@cache
def statement(name: str) -> str:
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
