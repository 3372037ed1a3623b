from django.apps import AppConfig
from django.core.checks import register
from django.db import router


class ExecutionsConfig(AppConfig):
    name = "executions"
    label = "harbor_executions"
    verbose_name = "Harbor Refresh"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from executions import checks, execution_log
        from executions.database import WriterOnly

        router.routers.insert(0, WriterOnly(self.label))
        execution_log.connect()
        register(checks.check_handlers)
