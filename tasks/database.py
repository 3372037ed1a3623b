"""The statements of this app, and those of the pages and passes over it."""

from executions.database import Statements

run = Statements(__package__)
