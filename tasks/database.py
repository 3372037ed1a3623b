"""Run the statements of this app."""

from executions.database import Statements

run = Statements(__package__)
