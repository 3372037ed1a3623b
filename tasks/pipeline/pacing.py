"""Pacing: how much is claimed and sent at a time, and when this process checks again. All times are in seconds."""

#: Messages that may wait with the broker, however few nodes there are.
SLOTS = 32
#: Beyond a small backlog no chunk but the last is smaller: messages cost, and a thousand take some 30 ms.
LEAST_CHUNK = 1_000
#: So many chunks are claimed together and dealt out by their ids: a set has no order, and the database finds
#: neighbouring rows with half the work.
CHUNKS_TOGETHER = 6
#: How much smaller the chunk of a member gets with each of its failures, until it stands alone and fails alone.
SHRINK = 20

#: While little waits, marks of so long share a tick: each would send one of its own otherwise.
GATHERING_SECONDS = 0.1
#: Minimum spacing between two checks, so that they are not merged.
SPACING_SECONDS = 0.05
#: Checks that are due so close together are one.
MERGED_SECONDS = 0.02
#: A few rows were found locked: another refresh has them, and is mostly over after so long.
BUSY_SECONDS = 0.5
