"""What is kept of the end of a run besides its status: the result of a success, the traceback of an error."""

import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from harbor_refresh.executions.text import json_text, made_storable
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.celery_json import as_json
from harbor_refresh.tasks.redaction import redacted

#: In characters. Of a longer traceback the end is kept, because it has the error.
MAX_TRACEBACK = 8_000
CUT = "[the beginning was cut]\n"
#: So much of a traceback is searched for secrets. More than is kept, so that none is cut in two before that.
MAX_SEARCHED = 50_000
MAX_REASON = 300


@dataclass(frozen=True)
class Kept:
    """`result` is the value as JSON has it. `why_not` is the reason if it was not kept."""

    result: Any = None
    why_not: str = ""
    traceback: str = ""

    @property
    def is_result(self) -> bool:
        return not (self.why_not or self.traceback)


def kept_result(result: Any) -> Kept:
    """Return the result, or why it cannot be kept: the job has succeeded anyway."""
    try:
        value = as_json(result)
        size = len(json_text(value).encode())
    except (TypeError, ValueError) as exc:
        return Kept(why_not=made_storable(f"it cannot be kept as JSON: {exc}")[:MAX_REASON])
    if size > (most := refresh_settings().result_bytes):
        return Kept(why_not=f"it takes {size:,} bytes, and REFRESH_RESULT_BYTES is {most:,}")
    return Kept(value)


def kept_traceback(exc: BaseException, runner: str) -> Kept | None:
    """Return the traceback of a job from its own code on, without secrets: the frames of the module `runner`,
    which has called it, are left out. None if it cannot be written: the job ends anyway."""
    with suppress(Exception):
        own_code = exc.__traceback__
        while own_code and own_code.tb_next and own_code.tb_frame.f_globals.get("__name__") == runner:
            own_code = own_code.tb_next
        text = "".join(traceback.format_exception(type(exc), exc, own_code))
        text = made_storable(redacted(text[-MAX_SEARCHED:]))
        if len(text) > MAX_TRACEBACK:
            text = CUT + text[len(CUT) - MAX_TRACEBACK :]
        return Kept(traceback=text)
    return None
