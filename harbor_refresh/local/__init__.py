"""A whole Harbor Refresh on one machine: embedded servers, and the supervisor behind `make up`.

This package owns what a newcomer and the tests need and production does not: a PostgreSQL and a Valkey started
from wheels, and the processes around them. Only the bench and the tests import it. It must not touch the
domain: it starts `manage.py` and Celery as a user would.
"""


class LocalError(Exception):
    """A failure that a person has to act on. The text says what happened, what it means and what to do."""
