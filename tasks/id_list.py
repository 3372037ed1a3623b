"""A list of ids in a sentence for people."""

from collections.abc import Sequence


def id_list(ids: Sequence[int], *, at_most: int) -> str:
    more = len(ids) - at_most
    return ", ".join(map(str, ids[:at_most])) + (f" and {more:,} more" if more > 0 else "")
