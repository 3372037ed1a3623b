"""What is wrong? One registry of checks, of which `manage.py check`, `harbor check`, `doctor`, `attach check`, the
dashboard, `/readyz` and the start of a worker each show a selection.

A new check is one function that yields Django's `Error` or `Warning`: what is wrong, what that means, and as the
hint what to type. It stands here:

| it looks at | module | it is |
| --- | --- | --- |
| settings | `settings`, `celery_options` | a check of Django's, with an id as `harbor_tasks.E001` |
| a server | `postgres`, `redis_servers` | decorated with `@check`, which says who shows it |
| beat, workers, the work | `workers`, `statuses` | the same |
| a Harbor beside us | `harbor_refresh/attach/checks` | the same |

Django makes its checks in every build and before the first `migrate`, where no server runs. So what asks a server
is in a registry of our own (`registry`), which looks at `facts`. `examination` selects, and `output` prints.
"""
