"""Receivers of every kind, on real sockets: each ends as docs/howto/callbacks_and_webhooks.md says, and others do
not wait."""

import json
import ssl
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest
import trustme
from pytest_django import Settings
from standardwebhooks import Webhook

from harbor_refresh.executions.conf import pacing
from harbor_refresh.executions.lifecycle.sweep import sweep
from harbor_refresh.executions.models import Delivery, Execution, Subscription
from harbor_refresh.executions.news.deliveries import answers, claims, deliverer, sender
from harbor_refresh.executions.news.deliveries.deliverer import write_deliveries
from harbor_refresh.executions.news.deliveries.sender import CONNECTIONS, tls
from tests.integration.concurrency import in_background, wait_until
from tests.integration.executions.deliveries.changed_executions import end, ended, move_clock, rerun, states
from tests.integration.executions.deliveries.receiver import Receiver, free_port, receiver
from tests.integration.sample_executions import delete
from tests.waiting import slowness

pytestmark = pytest.mark.usefixtures("database")

Subscribe = Callable[..., Subscription]
Deliver = Callable[[], None]


def id_of(subscription: Subscription, execution: Execution, revision: int = 1) -> str:
    return f"status_{execution.pk}_{revision}_{subscription.pk}"


def one() -> Delivery:
    return Delivery.objects.get()


def test_a_change_arrives_once_signed_and_with_what_a_person_wants_to_know(
    good: Receiver, subscribed: Subscribe, deliver: Deliver, settings: Settings
) -> None:
    settings.REFRESH_PUBLIC_URL = "https://refresh.example.com/"
    subscription = subscribed(good)
    (execution,) = ended(extra_attrs={"repository": "library/hello"})
    end([execution], "Error", 2, "disk full")
    deliver()
    deliver()
    first, second = good.received
    assert good.ids() == [id_of(subscription, execution), id_of(subscription, execution, 2)]
    Webhook(subscription.secret).verify(second.body, second.headers)
    body = json.loads(second.body)
    execution.refresh_from_db()
    task = execution.tasks.get()

    def text(at: object) -> str:
        return at.isoformat().replace("+00:00", "Z")  # type: ignore[attr-defined]

    assert execution.end_time
    at = text(execution.history.get(revision=2).at)
    assert body == {
        "type": "execution.status_changed",
        "timestamp": at,
        "data": {
            "execution": {
                "id": execution.pk,
                "vendor_type": "REPLICATION",
                "vendor_id": 0,
                "vendor_key": "0",
                "status": "Error",
                "status_message": "",
                "trigger": "MANUAL",
                "extra_attrs": {"repository": "library/hello"},
                "start_time": text(execution.start_time),
                "update_time": text(execution.update_time),
                "end_time": text(execution.end_time),
                "revision": 2,
            },
            "from": "Success",
            "to": "Error",
            "revision": 2,
            "at": at,
            "counts": {"Error": 1},
            "duration_seconds": round((execution.end_time - execution.start_time).total_seconds(), 3),
            "first_failures": [{"task_id": task.pk, "job_id": "", "message": "disk full"}],
            "deleted": False,
            "link": f"https://refresh.example.com/admin/harbor_executions/execution/{execution.pk}/change/",
        },
    }
    assert second.headers["content-type"] == "application/json"
    assert states() == {"delivered": 2}
    assert json.loads(first.body)["data"]["to"] == "Success"


def test_slack_gets_text_in_which_nothing_is_markup(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    subscribed(good, payload="slack")
    executions = ended(vendor="A<b>&")
    end(executions, "Error", 2, "<!channel> & " + "x" * 600)
    deliver()
    body = json.loads(good.received[1].body)
    text = body["blocks"][0]["text"]["text"]
    assert body["text"] == f"A&lt;b&gt;&amp; execution {executions[0].pk}: Error"
    assert "&lt;!channel&gt; &amp; x" in text
    assert "<!channel>" not in text
    assert len(text) <= 3_000


def test_the_requests_to_a_webhook_share_its_connections(
    good: Receiver, subscribed: Subscribe, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "CONNECTIONS", 1)
    monkeypatch.setattr(sender, "KEPT_SECONDS", 60.0)
    subscribed(good)
    ended(5)
    deliver()
    assert (len(good.received), len({one.port for one in good.received})) == (5, 1)


@pytest.mark.parametrize("manner", ["hangs", "drips"])
def test_a_receiver_that_does_not_answer_delays_no_other_and_is_tried_again(
    good: Receiver, subscribed: Subscribe, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others get all of theirs while its first requests have not even ended."""
    with receiver(manner=manner) as bad:
        slow, quick = subscribed(bad), subscribed(good)
        executions = ended(30)
        tried = Delivery.objects.filter(subscription=slow, attempts__gt=0)
        with in_background(deliverer.deliver) as finished:
            wait_until(lambda: len(good.received) == 30, "the other receiver to have all")
            wait_until(lambda: len(bad.received) == CONNECTIONS, "its first requests")
            assert set(tried.values_list("last_error", flat=True)) == {""}, "none has ended"
            bad.ended.set()
            finished()
        assert sorted(good.ids()) == sorted(id_of(quick, execution) for execution in executions)
        assert states(subscription=slow) == {"pending": 30}
        assert tried.count() == len(bad.received) == CONNECTIONS
        slow.refresh_from_db()
        assert slow.failures == CONNECTIONS
        assert slow.retry_at is not None
        bad.ended.clear()
        monkeypatch.setattr(pacing, "DELIVER_TIMEOUT_SECONDS", 1.0)
        move_clock(minutes=30)
        deliverer.deliver()
        assert tried.filter(last_error="no answer within 1 s").count() == 1
        assert states(subscription=slow) == {"pending": 30}
        monkeypatch.setattr(pacing, "DELIVER_TIMEOUT_SECONDS", 60.0)
        bad.ended.set()
        bad.manner = "answers"
        for _ in range(20):
            move_clock(minutes=30)
            deliverer.deliver()
        assert states() == {"delivered": 60}
    assert set(bad.ids()) == {id_of(slow, execution) for execution in executions}


def test_a_receiver_that_answers_500_for_an_hour_gets_all_of_it_afterwards(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    """While it is down it costs one request each time that its circuit lets one through."""
    good.status = 500
    subscription = subscribed(good)
    executions = ended(40)
    deliver()
    asked = [len(good.received)]
    for _ in range(60):
        move_clock(minutes=1)
        deliver()
        asked.append(len(good.received))
    assert claims.CIRCUIT_OPENS <= asked[0] <= CONNECTIONS
    assert all(later - before <= 1 for before, later in pairwise(asked))
    assert 5 <= asked[-1] - asked[0] <= 20
    assert states() == {"pending": 40}
    subscription.refresh_from_db()
    assert subscription.failures == asked[-1]
    good.status = 204
    for _ in range(10):
        move_clock(hours=2)
        deliver()
    assert states() == {"delivered": 40}
    assert {id_of(subscription, execution) for execution in executions} == set(good.ids())
    subscription.refresh_from_db()
    assert (subscription.failures, subscription.failing_since, subscription.retry_at) == (0, None, None)


@pytest.mark.parametrize("status", [400, 404, 410, 422])
def test_a_refusal_is_final_and_told(
    good: Receiver, subscribed: Subscribe, deliver: Deliver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    good.status, good.body = status, b"no such thing"
    subscription = subscribed(good, name="pager")
    ended(2)
    deliver()
    deliver()
    assert len(good.received) == 2
    assert states() == {"dead": 2}
    assert {row.last_error for row in Delivery.objects.all()} == {f"it answered {status}: no such thing"}
    assert "Gave up" in caplog.text
    assert "deliveries to pager" in caplog.text
    subscription.refresh_from_db()
    assert subscription.failures == 0


@pytest.mark.parametrize("status", [302, 308, 401, 403, 408, 409, 425, 429, 500, 503])
def test_another_answer_is_tried_again(
    good: Receiver, subscribed: Subscribe, deliver: Deliver, status: int
) -> None:
    good.status = status
    subscribed(good)
    ended(1)
    deliver()
    assert (one().state, one().attempts, one().last_error.split(",")[0]) == (
        "pending",
        1,
        f"it answered {status}",
    )


def test_retry_after_is_waited_for(good: Receiver, subscribed: Subscribe, deliver: Deliver) -> None:
    good.status, good.headers = 429, {"Retry-After": "7200"}
    subscribed(good)
    ended(1)
    deliver()
    move_clock(minutes=119)
    deliver()
    assert len(good.received) == 1
    move_clock(minutes=1)
    deliver()
    assert len(good.received) == 2


def test_a_redirect_is_not_followed(good: Receiver, subscribed: Subscribe, deliver: Deliver) -> None:
    with receiver("127.0.0.2") as forbidden:
        good.status = 307
        good.headers = {"Location": f"http://user:secret@127.0.0.2:{forbidden.port}/token"}
        subscribed(good)
        ended(1)
        deliver()
        assert forbidden.received == []
    assert one().state == "pending"
    assert one().last_error == (
        f"it answered 307, a redirect to http://127.0.0.2:{forbidden.port}, which is not followed"
    )


class Names:
    """A name server that gives another answer each time."""

    def __init__(self, *results: Sequence[str]) -> None:
        self.results = list(results)
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        assert host == "receiver.example"
        self.asked += 1
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


def test_a_name_is_resolved_once_for_check_and_connection(
    good: Receiver, subscribed: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads to an address that is forbidden if it is asked again, between check and use."""
    with receiver("127.0.0.2") as forbidden:
        forbidden.port = good.port
        names = Names(["127.0.0.1"], ["127.0.0.2"])
        subscribed(f"http://receiver.example:{good.port}/")
        ended(1)
        monkeypatch.setattr(sender, "look_up", names)
        deliverer.deliver()
        assert (len(good.received), len(forbidden.received), names.asked) == (1, 0, 1)
    assert good.received[0].headers["host"] == f"receiver.example:{good.port}"
    assert one().state == "delivered"


def test_a_name_that_hangs_takes_one_thread_and_stops_no_other_webhook(
    good: Receiver, subscribed: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked = threading.Event(), list[str]()

    def look_up(host: str, port: int) -> list[str]:
        asked.append(host)
        assert host == "good.example" or answers.wait(60)
        return ["127.0.0.1"]

    monkeypatch.setattr(sender, "RESOLVING", 2)
    monkeypatch.setattr(sender, "look_up", look_up)
    monkeypatch.setattr(pacing, "DELIVER_TIMEOUT_SECONDS", 2.0 * slowness())
    subscribed("http://hangs.example/")
    subscribed(f"http://good.example:{good.port}/")
    ended(5)
    deliverer.deliver()
    answers.set()
    assert (len(good.received), asked.count("hangs.example")) == (5, 1)


@pytest.mark.parametrize("found", [["127.0.0.2"], ["127.0.0.1", "127.0.0.2"], ["::ffff:127.0.0.2"], ["10.0.0.1"]])
def test_a_name_that_leads_to_a_forbidden_address_is_not_connected(
    good: Receiver, subscribed: Subscribe, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver("127.0.0.2") as forbidden:
        subscribed(f"http://receiver.example:{forbidden.port}/")
        ended(1)
        monkeypatch.setattr(sender, "look_up", Names(found))
        deliverer.deliver()
        assert forbidden.received == []
    assert (one().state, one().last_error) == ("pending", "the name leads to no address that webhooks may reach")


@pytest.mark.parametrize(
    ("name", "is_trusted", "is_good"),
    [("receiver.example", True, True), ("other.example", True, False), ("receiver.example", False, False)],
    ids=["of its name", "of another name", "of an unknown authority"],
)
def test_a_certificate_must_be_trusted_and_name_the_receiver(
    name: str, is_trusted: bool, is_good: bool, subscribed: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its address and not its name is connected."""
    authority, server, client = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(server)
    if is_trusted:
        authority.configure_trust(client)
    monkeypatch.setattr(sender, "tls", lambda: client)
    with receiver(tls=server) as secured:
        subscribed(f"https://receiver.example:{secured.port}/")
        ended(1)
        monkeypatch.setattr(sender, "look_up", Names(["127.0.0.1"]))
        deliverer.deliver()
        assert len(secured.received) == is_good
    assert one().state == ("delivered" if is_good else "pending")
    assert ("CERTIFICATE_VERIFY_FAILED" in one().last_error) is not is_good


def test_the_certificates_of_receivers_are_checked() -> None:
    assert (tls().verify_mode, tls().check_hostname) == (ssl.CERT_REQUIRED, True)


def test_an_answer_without_end_is_cut_off(good: Receiver, subscribed: Subscribe, deliver: Deliver) -> None:
    good.status, good.manner = 200, "pours"
    subscribed(good)
    ended(1)
    deliver()
    assert one().state == "delivered"


def test_a_receiver_that_is_not_there_is_tried_again(subscribed: Subscribe, deliver: Deliver) -> None:
    subscribed(f"http://127.0.0.1:{free_port()}/")
    ended(1)
    deliver()
    assert one().state == "pending"
    assert one().last_error.startswith("ConnectError")


def test_an_overdue_delivery_keeps_its_error_and_does_not_count_as_a_deleted_row(subscribed: Subscribe) -> None:
    subscribed("http://127.0.0.1:9/")
    ended(2)
    write_deliveries()
    Delivery.objects.filter(pk=Delivery.objects.earliest("pk").pk).update(last_error="it answered 500")
    move_clock(days=4)
    assert sweep().forgotten == {}
    errors = Delivery.objects.filter(state="dead").order_by("pk").values_list("last_error", flat=True)
    assert list(errors) == ["it answered 500", "nothing was sent: the receiver was down"]


def test_the_attempts_of_a_delivery_are_bounded(
    good: Receiver, subscribed: Subscribe, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MAX_ATTEMPTS", 3)
    good.status = 500
    subscribed(good)
    ended(1)
    for _ in range(4):
        deliver()
        move_clock(minutes=5)
    assert (one().state, one().attempts, len(good.received)) == ("dead", 3, 3)


def test_a_delivery_whose_processes_die_each_time_is_given_up_and_the_next_one_is_sent(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    subscription = subscribed(good)
    (execution,) = ended(1)
    rerun([execution], 2)
    write_deliveries()
    for _ in range(claims.MAX_ATTEMPTS):
        assert [known.revision for known in claims.claim(5, 60)] == [1]
        move_clock(minutes=31)
    deliver()
    assert good.ids() == [id_of(subscription, execution, 3)]
    assert list(
        Delivery.objects.order_by("revision").values_list("revision", "state", "attempts", "last_error")
    ) == [
        (1, "dead", 30, "given up after 30 attempts: its process ended or hung in the last one"),
        (3, "delivered", 1, ""),
    ]
    subscription.refresh_from_db()
    assert (subscription.failures, subscription.retry_at) == (0, None), "nothing is known of the receiver"


def test_the_backoff_grows_to_a_day_and_is_spread() -> None:
    """No retry comes at once, and what failed together does not return together."""
    for attempt, longest in ((1, 5), (2, 10), (10, 2_560), (15, 81_920), (40, 86_400)):
        delays = [answers.backoff(attempt) for _ in range(300)]
        assert longest / 2 <= min(delays) < 0.6 * longest
        assert 0.9 * longest < max(delays) <= longest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 0), ("7", 7), ("99999999999", 86_400), ("-1", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("x" * 900, 0)],
)
def test_a_retry_after_is_bounded(text: str, seconds: float) -> None:
    assert answers.seconds_of(text) == seconds


def test_the_changes_of_an_execution_arrive_in_order_and_one_at_a_time(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    """Those that follow a failed one wait for it; other executions do not."""
    subscription = subscribed(good, statuses=())
    stuck, free = ended(2)
    rerun([stuck, free], 2)
    good.answer_of = lambda got: 500 if got.id == id_of(subscription, stuck) else 204
    deliver()
    assert [name for name in good.ids() if name.startswith(f"status_{free.pk}_")] == [
        id_of(subscription, free, revision) for revision in (1, 2, 3)
    ]
    assert [name for name in good.ids() if name.startswith(f"status_{stuck.pk}_")] == [id_of(subscription, stuck)]
    good.answer_of = None
    move_clock(minutes=1)
    deliver()
    stucks = [name for name in good.ids() if name.startswith(f"status_{stuck.pk}_")]
    assert stucks == [id_of(subscription, stuck, revision) for revision in (1, 1, 2, 3)]


def test_a_dead_letter_holds_up_no_later_change_of_its_execution(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    subscription = subscribed(good, statuses=())
    (execution,) = ended(1)
    rerun([execution], 2)
    good.answer_of = lambda got: 410 if got.id == id_of(subscription, execution) else 204
    deliver()
    assert good.ids() == [id_of(subscription, execution, revision) for revision in (1, 2, 3)]
    assert states() == {"dead": 1, "delivered": 2}


def test_what_was_listed_is_delivered_although_its_execution_is_deleted(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    subscribed(good)
    (execution,) = ended(1)
    write_deliveries()
    delete([execution.pk])
    deliver()
    data = json.loads(good.received[0].body)["data"]
    assert (data["deleted"], data["execution"]["id"], data["to"], data["counts"]) == (
        True,
        execution.pk,
        "Success",
        {},
    )


def test_a_result_of_an_overtaken_claim_records_nothing(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    """A process that stood still past its lease knows of a failure; meanwhile another one has delivered."""
    subscribed(good)
    ended(1)
    write_deliveries()
    (late,) = claims.claim(5, lease=0.0)
    deliver()
    assert one().state == "delivered"
    recorded = claims.record([answers.result(late, answers.Answer(410, "it answered 410"))])
    assert (recorded, one().state, one().last_error) == ([], "delivered", "")


def test_a_result_from_before_a_dead_letter_was_sent_again_records_nothing(
    good: Receiver, subscribed: Subscribe
) -> None:
    """Its attempts are counted from one again, so the number of a late claim comes again."""
    subscribed(good)
    ended(1)
    write_deliveries()
    (late,) = claims.claim(5, lease=0.0)
    (next_one,) = claims.claim(5, lease=60.0)
    claims.record([answers.result(next_one, answers.Answer(410, "it answered 410"))])
    assert claims.resend(Delivery.objects.filter(pk=late.pk)) == 1
    (again,) = claims.claim(5, lease=60.0)
    assert again.attempts == late.attempts
    recorded = claims.record([answers.result(late, answers.Answer(204))])
    assert (recorded, one().state) == ([], "pending")


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Have the reading of a claim take so many seconds, and call `meanwhile` in between; return the list of how
    many deliveries were read at once."""
    clock, read = [0.0], list[int]()

    def takes(seconds: int, meanwhile: Callable[[], object] = lambda: None) -> list[int]:
        def read_changes(claimed: Sequence[Delivery]) -> object:
            for _ in range(seconds // 5 if claimed else 0):
                clock[0] += 5
                move_clock(seconds=5)
                for delivery in claimed:  # as in its row
                    delivery.created_at -= timedelta(seconds=5)
                meanwhile()
            read.extend([len(claimed)] if claimed else [])
            return claims.read_changes(claimed)

        monkeypatch.setattr(pacing, "DELIVER_TIMEOUT_SECONDS", 10.0)
        monkeypatch.setattr(sender, "read_changes", read_changes)
        monkeypatch.setattr(sender, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        return read

    return takes


@pytest.mark.parametrize(("seconds", "attempts"), [(15, 1), (25, 2), (100, 4)])
def test_a_change_that_takes_long_to_read_is_sent_once(
    seconds: int, attempts: int, good: Receiver, subscribed: Subscribe, reading: Callable[..., list[int]]
) -> None:
    """Longer than its first lease, as an execution of millions of tasks may."""
    subscription = subscribed(good)
    (execution,) = ended(1)
    reading(seconds)
    deliverer.deliver()
    assert good.ids() == [id_of(subscription, execution)]
    assert (one().state, one().attempts) == ("delivered", attempts)


def test_a_change_that_takes_long_to_read_is_sent_although_each_sender_overtakes_the_one_before(
    good: Receiver, subscribed: Subscribe, reading: Callable[..., list[int]]
) -> None:
    """The other senders read it as slowly, and none of them comes to send it."""
    subscription = subscribed(good)
    (execution,) = ended(1)
    reading(100, meanwhile=lambda: claims.claim(1, 30.0))
    deliverer.deliver()
    assert (good.ids(), one().attempts) == ([], 3), "the last two claims are those of other senders"
    move_clock(seconds=80)
    deliverer.deliver()
    assert good.ids() == [id_of(subscription, execution)]
    assert (one().state, one().attempts) == ("delivered", 4)


@pytest.mark.parametrize("seconds", [0, 5], ids=["quick", "slow"])
def test_a_webhook_gets_more_at_a_time_only_while_they_are_quick_to_read(
    seconds: int, good: Receiver, subscribed: Subscribe, reading: Callable[..., list[int]]
) -> None:
    """Other webhooks wait while they are read."""
    subscribed(good)
    ended(60)
    read = reading(seconds)
    deliverer.deliver()
    assert read[0] == 1
    assert max(read) == 1 if seconds else max(read) > 8
    assert states() == {"delivered": 60}


def test_two_deliverers_at_once_send_nothing_twice(good: Receiver, subscribed: Subscribe) -> None:
    subscription = subscribed(good)
    executions = ended(150)
    write_deliveries()
    with in_background(deliverer.deliver) as first, in_background(deliverer.deliver) as second:
        first()
        second()
    assert sorted(good.ids()) == sorted(id_of(subscription, execution) for execution in executions)
    assert states() == {"delivered": 150}
