"""The wheel: one importable name, `harbor_refresh`, with `executions` and `tasks` of the checkout below it.

`contents` says what it carries, `rewriting` changes the names of modules in the copies, and `backend` is what pip
calls. See docs/decisions/0036-one-namespace-by-a-build-step.md.
"""
