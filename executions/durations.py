"""Durations as people write them."""

UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(seconds: int) -> str:
    """The duration in its two largest units: `3 d 4 h`, `2 min 5 s`."""
    for large, its_unit, small, next_unit in UNITS:
        if seconds >= large:
            first, second = seconds // large, seconds % large // small
            return f"{first} {its_unit} {second} {next_unit}" if second else f"{first} {its_unit}"
    return f"{seconds} s"


def age(seconds: float) -> str:
    """A duration as precise as it is short: `350 ms`, `2.3 s`, `42 s`, `2 min 5 s`."""
    if seconds < 0.9995:
        return f"{round(max(seconds, 0) * 1000)} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else duration(round(seconds))


def ago(seconds: float | None) -> str:
    """How long ago it was, in whole seconds, so that a page that renews itself is calm: `just now`, `42 s ago`."""
    if seconds is None:
        return "never"
    return f"{duration(round(seconds))} ago" if seconds >= 1 else "just now"
