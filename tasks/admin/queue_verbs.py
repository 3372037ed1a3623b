"""The verbs of the page of the queue: what each asks first, and the use case that carries it out, which is that of
the API and the commands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django import forms
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Word, note, person_of
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, WORK
from harbor_refresh.tasks.models.state import MAX_REASON
from harbor_refresh.tasks.operations.pauses import name_of, pause, resume
from harbor_refresh.tasks.pipeline.recovery import recover


@dataclass(frozen=True)
class Verb:
    """A verb of this page. `ask` says what will happen to `target`, `act` does it and says what happened."""

    title: str
    submit: str
    ask: Callable[[str], str]
    act: Callable[[HttpRequest, str], str]
    form: type[forms.Form] | None = None


class ReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=MAX_REASON,
        required=False,
        widget=forms.TextInput({"autofocus": True}),
        help_text="The queue page, the commands and the API show it while the queue is paused.",
    )


def _pause(request: HttpRequest, queue: str) -> str:
    done = pause(queue, person_of(request), request.POST.get("reason", ""))
    return f"{name_of(queue)} is paused." if done else f"{name_of(queue)} was paused before."


def _resume(request: HttpRequest, queue: str) -> str:
    done = resume(queue, person_of(request))
    return f"{name_of(queue)} is resumed." if done else f"{name_of(queue)} was not paused."


def _recover(request: HttpRequest, _: str) -> str:
    count = recover()
    note(person_of(request), Word.RECOVER, Kind.QUEUE, count=count)
    return f"{plural(count, 'execution')} of dead nodes went back on the queue."


STAYS = "It stays paused until it is resumed, whatever restarts in between."


def _what_a_pause_does(queue: str) -> str:
    if queue == WORK:
        return (
            "No execution is claimed any more. Reports are stored as before, and their executions wait on the "
            f"queue. Executions that are claimed already are refreshed. {STAYS}"
        )
    if queue == DELIVERIES:
        return f"Notifications and handlers wait. Those that are under way still end. {STAYS}"
    return (
        f"Jobs of the queue {queue} that have not started wait. Running jobs continue. Plain Celery tasks are not "
        f"paused. {STAYS}"
    )


CHANGE = "harbor_tasks.change_pause"
VERBS: Mapping[str, Verb] = {
    "pause": Verb("Pause {}", "Pause", _what_a_pause_does, _pause, form=ReasonForm),
    "resume": Verb(
        "Resume {}",
        "Resume",
        lambda queue: "The work that waits is taken within seconds, as fast as the workers can.",
        _resume,
    ),
    "recover": Verb(
        "Recover now",
        "Recover",
        lambda _: (
            "Claims of dead nodes, and claims that are too old, go back on the queue. While beat and a worker "
            "run, this happens by itself every few seconds."
        ),
        _recover,
    ),
}
