"""What is wrong? One registry of checks, of which `manage.py check`, `harbor check`, `doctor`, `attach check`, the
dashboard, `/readyz` and the start of a worker each show a selection.

A new check is one function that yields Django's `Error` or `Warning`: what is wrong, what that means, and as the
hint what to type. One of settings is a check of Django's, with an id as `harbor_tasks.E001` (`settings`,
`celery_options`). Django makes these in every build and before the first `migrate`, where no server runs. So what
asks a server is in a registry of our own: decorated with `@check`, which says who shows it. `/readyz` names its
checks itself (harbor_refresh/web/probes.py).
"""
