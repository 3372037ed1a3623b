"""The statements, one a file. The comment at the head of each file is its contract.

Values are always bound, never put into the text.
"""

from functools import cache
from importlib.resources import files


@cache
def text(package: str, name: str) -> str:
    """The content of the file NAME.sql in the folder `sql` of a package."""
    return files(package).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
