"""Pacing: how much is claimed and sent at a time, and when a process checks again. All times are in seconds."""

#: Messages that may wait with the broker, however few nodes are live.
SLOTS = 32
#: Least size of a chunk beyond a small backlog, except for the last one: each message has a cost, and a thousand
#: members take only some 30 ms.
LEAST_CHUNK = 1_000
#: Number of chunks that are claimed together and then split in the order of their ids: a set has no order, and the
#: database finds neighbouring rows with half the work.
CHUNKS_TOGETHER = 6
#: Divisor of the chunk size for each failure of a member, until the member is alone in its chunk and fails alone.
SHRINK = 20

#: While the queue is short, marks within this time share a tick. Otherwise each mark would send its own.
GATHERING_SECONDS = 0.1
#: Minimum spacing between two checks, so that they are not merged.
SPACING_SECONDS = 0.05
#: Checks that are due within this time of each other are merged.
MERGED_SECONDS = 0.02
#: Delay before a check if a few rows were locked: another refresh has them, and is mostly finished by then.
BUSY_SECONDS = 0.5
