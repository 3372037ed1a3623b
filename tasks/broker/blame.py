"""Find the function in which a library failed, where one call of the library does several things."""

import traceback
from typing import Any


def is_raised_in(exc: BaseException, function: Any) -> bool:
    """Whether this function was running when the error was raised."""
    return any(frame.f_code is function.__code__ for frame, _ in traceback.walk_tb(exc.__traceback__))
