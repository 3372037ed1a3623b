"""The truth, on PostgreSQL alone: executions, their tasks, and the rule by which the status of the one follows
from the others. One use case a module. What other apps are told stands in `news`; this one imports none of them.
"""
