from django.apps import AppConfig
from django.core.checks import register
from django.db import router


class ExecutionsConfig(AppConfig):
    name = "executions"
    verbose_name = "Harbor Refresh"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from executions import narrator
        from executions.checks import check_settings
        from executions.database import WriterOnly
        from executions.usecases.jobs import counting

        register(check_settings)
        router.routers.insert(0, WriterOnly())
        narrator.begin()
        counting.begin()
