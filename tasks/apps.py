from django.apps import AppConfig
from django.core.checks import register
from django.db import router
from django.db.models.signals import post_migrate

from harbor_refresh.executions.database import WriterOnly


class TasksConfig(AppConfig):
    name = "harbor_refresh.tasks"
    label = "harbor_tasks"
    verbose_name = "Jobs and queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import harbor_refresh.tasks.celery_tasks  # noqa: F401  # so that every process can send them
        from harbor_refresh.executions.checks import OURS
        from harbor_refresh.executions.news import callbacks
        from harbor_refresh.executions.queries.filters import register_condition
        from harbor_refresh.tasks import schedule
        from harbor_refresh.tasks.checks import celery_options, project, settings
        from harbor_refresh.tasks.jobs import end_callbacks, queries
        from harbor_refresh.tasks.news import pipeline_log
        from harbor_refresh.tasks.overview import events

        for check in (settings.check_settings, celery_options.check_celery, project.check_project):
            register(check, OURS)
        router.routers.insert(0, WriterOnly(self.label))
        pipeline_log.connect()
        register_condition("has_jobs", queries.has_jobs)
        callbacks.find_by(end_callbacks.find)
        post_migrate.connect(schedule.restore_rows, sender=self, dispatch_uid="tasks.schedule")
        events.connect()
        self._listen_to_news()
        self._listen_to_celery()

    def _listen_to_news(self) -> None:
        from harbor_refresh.executions.news.after_commit import changes_written, executions_touched
        from harbor_refresh.tasks.jobs import report_target, sender
        from harbor_refresh.tasks.operations import delivery_runs
        from harbor_refresh.tasks.pipeline import marks

        report_target.reports_taken.connect(sender.on_reports_taken, dispatch_uid="tasks.jobs.sender")
        executions_touched.connect(marks.on_executions_touched, dispatch_uid="tasks.pipeline.marks")
        changes_written.connect(delivery_runs.on_changes_written, dispatch_uid="tasks.operations.delivery_runs")

    def _listen_to_celery(self) -> None:
        from celery.signals import (
            beat_init,
            celeryd_after_setup,
            celeryd_init,
            import_modules,
            worker_process_shutdown,
            worker_ready,
            worker_shutdown,
        )

        from harbor_refresh.tasks import celery_tasks, heartbeat, host, schedule
        from harbor_refresh.tasks.jobs import nodes, report_target, sender
        from harbor_refresh.tasks.jobs.messages import celery_events
        from harbor_refresh.tasks.jobs.running import writer
        from harbor_refresh.tasks.operations import delivery_runs
        from harbor_refresh.tasks.strategies import strategy
        from harbor_refresh.tasks.without_redis import mode

        for ending in (worker_process_shutdown, worker_shutdown):  # a pool without processes has the second only
            # the writer first, because the poster reports what it writes
            ending.connect(writer.of_this_process.stop, dispatch_uid="tasks.jobs.writer")
            ending.connect(sender.publisher.stop, dispatch_uid="tasks.jobs.publisher")
            ending.connect(report_target.of_this_process.stop, dispatch_uid="tasks.jobs.report_target")
        worker_ready.connect(delivery_runs.on_worker_ready, dispatch_uid="tasks.operations.delivery_runs")
        beat_init.connect(schedule.follow_setting, dispatch_uid="tasks.schedule")
        for starting in (import_modules, celeryd_init):
            starting.connect(host.add_steps, dispatch_uid="tasks.host.steps")
        celery_events.connect()
        # after the writer of a pool without processes
        worker_shutdown.connect(nodes.this_node.stop, dispatch_uid="tasks.jobs.nodes")
        heartbeat.connect()
        celeryd_after_setup.connect(mode.decide, dispatch_uid="tasks.without_redis.mode")
        celeryd_after_setup.connect(celery_tasks.subscribe, dispatch_uid="tasks.run_cycle")
        strategy().connect()
