"""The pipeline: from a mark on an execution to its true status.

| if this is lost | it is repaired by | after |
| --- | --- | --- |
| the process that refreshes a claim | `recovery`: claims of a dead node are released | its ttl of 10 s, and 5 s |
| the message of a claim | `recovery`, if no other waits with the broker, or its age | 15 s; 5 minutes |
| a tick | the next mark, `wakeup.check`, or the schedule | seconds |
| a mark, because Redis was down or emptied | `reconciliation`: rows that differ from their tasks | its interval |
| a status that cannot be written | a quarantine, until a person, a stop, a retry or an hour releases it | |
"""
