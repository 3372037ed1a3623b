"""Arguments of command lines, for the programs beside the service."""

from argparse import ArgumentTypeError
from collections.abc import Callable


def count(at_least: int, at_most: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = at_least - 1
        if not at_least <= number <= at_most:
            raise ArgumentTypeError(f"got {text!r}, takes a whole number from {at_least:,} to {at_most:,}")
        return number

    return whole_number
