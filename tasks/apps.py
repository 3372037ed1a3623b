from django.apps import AppConfig
from django.core.checks import register
from django.db import router
from django.db.models.signals import post_migrate

from harbor_refresh.executions.database import Router


class TasksConfig(AppConfig):
    name = "harbor_refresh.tasks"
    label = "harbor_tasks"
    verbose_name = "Jobs and queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import harbor_refresh.tasks.celery_tasks  # noqa: F401  # so that every process can send them
        from harbor_refresh.executions.conf.startup import OURS
        from harbor_refresh.executions.news import callbacks
        from harbor_refresh.executions.news.after_commit import changes_written, executions_touched
        from harbor_refresh.tasks.checks import (  # noqa: F401  # they register
            celery_options,
            postgres,
            redis_servers,
            settings,
            statuses,
            workers,
        )
        from harbor_refresh.tasks.jobs import end_callbacks, report_target, sender
        from harbor_refresh.tasks.news import events
        from harbor_refresh.tasks.operations import delivery_runs
        from harbor_refresh.tasks.pipeline import marks, schedule

        for check in (settings.check_settings, celery_options.check_celery, settings.check_project):
            register(check, OURS)
        router.routers.insert(0, Router(self.label))
        callbacks.find = end_callbacks.find
        post_migrate.connect(schedule.restore_rows, sender=self)
        events.connect()
        report_target.reports_taken.connect(sender.send_behind)
        executions_touched.connect(marks.on_executions_touched)
        changes_written.connect(delivery_runs.on_changes_written)
        self._listen_to_celery()

    def _listen_to_celery(self) -> None:
        from celery import signals

        from harbor_refresh.tasks import celery_tasks
        from harbor_refresh.tasks.broker import celery_app
        from harbor_refresh.tasks.jobs import live_workers, report_target, sender
        from harbor_refresh.tasks.jobs.running import dropped_messages, kept_connections, tracked, writer
        from harbor_refresh.tasks.pipeline import heartbeat, schedule, wakeup
        from harbor_refresh.tasks.strategies.older import refuse_without_a_number
        from harbor_refresh.tasks.without_redis import mode

        # a pool without processes has the second only
        for ending in (signals.worker_process_shutdown, signals.worker_shutdown):
            # the writer first, because the poster reports what it writes; Celery 5.6 tells methods of one class
            # apart by these names alone
            ending.connect(writer.of_this_process.stop, dispatch_uid="tasks.jobs.writer")
            ending.connect(sender.publisher.stop, dispatch_uid="tasks.jobs.publisher")
            ending.connect(kept_connections.of_this_process.stop, dispatch_uid="tasks.jobs.kept_connections")
            ending.connect(report_target.poster.stop, dispatch_uid="tasks.jobs.report_target")
            ending.connect(heartbeat.of_this_process.stop, dispatch_uid="heartbeat.stop")
        signals.worker_ready.connect(wakeup.send_first, dispatch_uid="wakeup.send_first")
        signals.beat_init.connect(schedule.follow_setting)
        for starting in (signals.import_modules, signals.celeryd_init):
            starting.connect(celery_app.add_step)
        signals.task_revoked.connect(dropped_messages.on_revoked, dispatch_uid="tasks.jobs.revoked")
        signals.task_failure.connect(tracked.on_failed, dispatch_uid="tasks.jobs.failed")
        signals.task_postrun.connect(tracked.on_untracked, dispatch_uid="tasks.jobs.untracked")
        for dropping in (signals.task_unknown, signals.task_rejected):
            dropping.connect(dropped_messages.on_dropped, dispatch_uid="tasks.jobs.dropped")
        # after the writer of a pool without processes
        signals.worker_shutdown.connect(live_workers.this_worker.stop)
        signals.worker_process_init.connect(heartbeat.start, dispatch_uid="heartbeat.start")
        signals.task_prerun.connect(heartbeat.start, dispatch_uid="heartbeat.start_late")
        signals.celeryd_after_setup.connect(mode.decide)
        signals.celeryd_after_setup.connect(celery_tasks.subscribe)
        signals.celeryd_init.connect(refuse_without_a_number)
