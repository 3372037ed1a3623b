"""A badge of the sidebar, for settings: it names its count and reads it when a page is rendered."""

from django.utils.module_loading import import_string


class Badge:
    """Shown while its count is not zero. Unfold would show a callback's badge even if it is empty."""

    def __init__(self, count: str) -> None:
        self._count = count

    def __bool__(self) -> bool:
        return bool(str(self))

    def __str__(self) -> str:
        return str(import_string(self._count)())
