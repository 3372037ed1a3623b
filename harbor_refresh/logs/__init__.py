"""The format of log lines: JSON for programs, text for people. One event is one line, with its ids and without
secrets."""
