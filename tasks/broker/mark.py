"""Notice that the broker has lost messages: it was emptied, restarted, or a replica took over from it.

If the broker is not the Redis of the queue, the queue then still holds claims whose messages are gone. A mark in
the broker names the moment, by the clock of the queue, at which the mark was made; the queue notes the same
moment. If they do not agree, a new mark is made. A claim that waits since before the mark is released
(tasks/queue/stale_claims.py): too early is harmless, because its message, if it is still there, finds no token.

| broker | the mark | what its absence means |
| --- | --- | --- |
| Redis | a key; it also names the server | emptied, or it does not keep its keys |
| RabbitMQ | a durable queue without messages, whose name ends with the moment | emptied, or unused for 30 days |

If the mark of a Redis names another server, it was restarted or failed over. RabbitMQ loses no message that it has
confirmed, so there the server makes no difference. Old marks of RabbitMQ expire; to ask for the noted one makes it
last. Jobs need no mark: those whose message is lost are overdue (tasks/jobs/sender.py).

If the process dies between the mark and the note, they do not agree, and the next pass makes both again. If two do
it at once, in Redis the last mark and the last note may differ, and then the next pass makes both again; in
RabbitMQ both marks are there, and the last note names one of them. If the mark cannot be made, it is never noted,
and nothing counts as lost. Another broker has no mark, and counts as emptied.
"""

from typing import Any

from amqp.exceptions import ChannelError

from harbor_refresh.tasks.broker import rabbitmq
from harbor_refresh.tasks.broker.pooled import pooled_channel
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.queue import execution_queue

MARK = "harbor_refresh.broker"
#: How long a queue of RabbitMQ that is a mark lasts without a look.
MARK_MILLISECONDS = 30 * 86_400_000


def lost_before() -> int:
    """Return the moment (us) before which messages of claims may be lost; 0 if the broker cannot tell."""
    with pooled_channel() as (driver, channel):
        if driver == rabbitmq.DRIVER:
            try:
                return _lost_by_rabbitmq(channel)
            except ChannelError:  # this user may not make the mark
                return 0
        if driver != "redis":
            return 0
        try:
            return _lost_before(channel.client)
        except channel.ResponseError:  # it is full, or this user may not ask
            return 0


def _lost_before(broker: Any) -> int:
    queue = execution_queue()
    server = broker.info("server")["run_id"]
    mark = broker.get(MARK) if broker.type(MARK) == b"string" else None
    noted = queue.broker_marked()
    if mark == f"{server} {noted}".encode():
        return noted
    now = queue.stats().now
    if noted:
        signals.messages_lost.send(sender=lost_before, is_empty=mark is None)
    broker.set(MARK, f"{server} {now}")
    queue.note_broker_mark(now)
    return now if noted else 0


def _lost_by_rabbitmq(channel: Any) -> int:
    queue = execution_queue()
    noted = queue.broker_marked()
    if noted and rabbitmq.has_queue(channel, f"{MARK}.{noted}"):
        return noted
    now = queue.stats().now
    channel.queue_declare(
        f"{MARK}.{now}", durable=True, auto_delete=False, arguments={"x-expires": MARK_MILLISECONDS}
    )
    try:
        if noted:
            signals.messages_lost.send(sender=lost_before, is_empty=True)
        queue.note_broker_mark(now)
    except Exception:  # else a Redis that takes no notes would leave a mark behind in each pass
        channel.queue_delete(f"{MARK}.{now}")
        raise
    return now if noted else 0
