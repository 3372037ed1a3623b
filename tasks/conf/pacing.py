"""Pacing: how much is claimed and sent at a time, how long hot executions rest, and when a process checks again.

The scripts in queue/lua take these constants by name, see queue/scripts.py. The wake-up is described in
pipeline/wakeup.py.
"""

from harbor_refresh.executions.conf.pacing import paced

# How much

#: Executions in a subtask at most, and in a claim. Larger ones are no faster.
CHUNK = paced("CHUNK", 6_000)
#: Subtasks that a node may hold: one runs, one is fetched while it ends, and one waits with the broker.
DEPTH = paced("DEPTH", 3)

#: Up to this backlog every execution is treated by itself: it gets its own subtask, and rests if it is hot.
SMALL = 16
#: Messages that may wait with the broker, however few nodes are live.
SLOTS = 32
#: Share of the room that is free when the next tick is worth sending. Below it the workers are busy anyway.
ENOUGH_ROOM = 0.5
#: Least size of a chunk beyond a small backlog, except for the last one: a thousand members take only some 30 ms.
LEAST_CHUNK = 1_000
#: Number of chunks that are claimed together and then split in the order of their ids: a set has no order, and the
#: database finds neighbouring rows with half the work.
CHUNKS_TOGETHER = 6
#: Divisor of the chunk size for each failure of a member, until the member is alone in its chunk and fails alone.
SHRINK = 20

# Nodes and claims

#: After so long a silent node counts as dead: longer than a machine under load stands still.
NODE_TTL_SECONDS = paced("NODE_TTL_SECONDS", 10.0)
#: A node sends a heartbeat so often: four may be late before a live node counts as dead.
HEARTBEAT_SECONDS = paced("HEARTBEAT_SECONDS", NODE_TTL_SECONDS / 5)
#: After so long a claim in progress is recovered even if its node is alive. A refresh takes seconds. The broker
#: delivers a message again after this time, too.
STALE_SECONDS = paced("STALE_SECONDS", 300.0)
#: So long no node claims after the database was found down.
DATABASE_PAUSE_SECONDS = paced("DATABASE_PAUSE_SECONDS", 2.0)
#: So long a quarantined execution rests before it is tried again.
QUARANTINE_SECONDS = paced("QUARANTINE_SECONDS", 3_600.0)
#: So long the queue has for a change before reconcile looks at it: as long as the net beneath the wake-ups needs.
RECONCILE_GRACE_SECONDS = paced("RECONCILE_GRACE_SECONDS", 30.0)

#: Slack of each look at the schedule, for a message that waits for a busy worker and for clocks that differ.
SLACK_SECONDS = 30


def longest_silence(interval: float) -> float:
    """Return the seconds without a tick after which no beat runs, or no worker takes ticks."""
    return 2 * interval + SLACK_SECONDS


# Answers

#: So long one answer of Redis may take; each of ours takes milliseconds. A Redis that hangs is tried twice.
REDIS_TIMEOUT_SECONDS = 1.5
#: So long one answer to a report over HTTP may take.
REPORT_TIMEOUT_SECONDS = 5.0

# The wake-up

#: The states of the wake key. No key: the next mark sends a tick.
TICK_SENT = "sent"  # a tick was sent, or ran a moment ago
MARKED_SINCE = "marked since"  # the same, and a member was marked since
#: After this time a tick that was sent counts as lost.
WAKE_TTL_MS = 2_000
#: While the queue is short, marks within this time share a tick. Otherwise each mark would send its own.
GATHERING_SECONDS = 0.1
#: Delay before a check if a few rows were locked: another refresh has them, and usually finishes in this time.
LOCKED_SECONDS = 0.5

# The rests of hot executions

#: The first rest of a member that was claimed from a short queue. Each next one is twice as long while many marks
#: arrive, and half as long when few do.
FIRST_REST_US = 50_000
#: The longest rest, while 16 or fewer wait.
LONGEST_REST_SECONDS = paced("LONGEST_REST_SECONDS", 2.0)
#: So many marks while a member waits make it hot.
MANY_MARKS = 5
#: The counters of marks and of rests are deleted above this number of members, so that they cannot grow for ever.
MOST_COUNTERS = 1_000
#: Counters of marks are deleted after this time without a mark.
MARKS_TTL_MS = 10_000

# What an overview shows

#: Members whose time on the queue is noted (queue/lua/_waiting.lua).
MOST_NOTED = 1_000
#: Nodes that are remembered after they stopped by themselves, and after they died.
MOST_LEFT = 1_000
MOST_DEAD = 100

# Harbor's own marks

#: Keys of the server that all ticks together look at in a second: 1 % of the time of a Redis.
LEGACY_KEYS_PER_SECOND = 10_000
#: Keys of the server in a page of a look for Harbor's marks, more or less; also marks in a page of an export.
#: If each key is a mark, a page blocks Redis for one to two milliseconds.
LOOK = 500
#: Pages of one tick at most: the keys of ten seconds, which keep the tick from its other work for less than one.
LOOKS_A_TICK = 200
#: From the end of one round over all keys to the begin of the next, at least. Less than the time between two
#: recoveries (5 s), each of which wakes a tick that must find a look due, if attached to a Harbor.
ROUND_SECONDS = 4.0
#: Passes of an export over queue and claims. More than two are needed only if marks or claims come meanwhile.
EXPORT_PASSES = 100

#: How long an execution runs before Harbor gives it up.
DANGLING_HOURS = 168.0

# The sweep

#: So long a message of the sweep works. Ticks wait for it in a worker with one process; so does a warm shutdown.
SWEEP_SECONDS = 2
