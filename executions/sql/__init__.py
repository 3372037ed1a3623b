"""The statements, one a file. The comment at the head of each file is its contract.

Values are always bound, never put into the text. The folder `attached` holds those statements that are others on
the tables of a running Harbor (executions/attached/attachment.py), with the same names and, if they say nothing
else, the same contracts. The folder `schema` holds the functions, triggers and constraints, which only migrations
read.
"""

from functools import cache
from importlib.resources import files

from harbor_refresh.executions.attached.attachment import is_attached


def text(package: str, name: str) -> str:
    """The content of the file NAME.sql in the folder `sql` of a package; attached, that in the folder `attached`
    beside it, if it is there. The name of a file in a folder of `sql` has the folder, as in `schema/NAME`."""
    return _text(package, name, is_attached())


@cache
def _text(package: str, name: str, attached: bool) -> str:
    *within, file = f"sql/{name}.sql".split("/")
    folder = files(package).joinpath(*within)
    other = folder.joinpath("attached", file)
    return (other if attached and other.is_file() else folder.joinpath(file)).read_text(encoding="utf-8")
