"""Projects of other people, in which our apps are guests. Each is a program of its own, because Django has one
project for a process."""
