"""Check-ins: what a running job of Harbor's job service has to say. Each is passed to the function that its vendor
type has registered, at least once: a sender that got no answer tries again.

    @on_check_in("RETENTION")
    def note_progress(check_in: CheckIn) -> None: ...
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class CheckIn:
    """A check-in of a job of Harbor's job service.

    Attributes:
        task_id: The id of its task.
        execution_id: The id of its execution.
        vendor_type: The vendor type of its execution.
        job_id: The id of the job.
        text: What the job says.
        at: The time in Unix seconds, by the clock of the sender.
        revision: The revision of the run.
    """

    task_id: int
    execution_id: int
    vendor_type: str
    job_id: str
    text: str
    at: int
    revision: int


Processor = Callable[[CheckIn], object]
functions: dict[str, Processor] = {}


def on_check_in(vendor_type: str) -> Callable[[Processor], Processor]:
    """Register the function that gets the check-ins of a vendor type. Each vendor type has one function."""

    def register(function: Processor) -> Processor:
        known = functions.setdefault(vendor_type, function)
        if known is not function:
            raise ValueError(f"check-ins of {vendor_type} go to {known!r} already")
        return function

    return register
