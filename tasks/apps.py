from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "tasks"

    def ready(self) -> None:
        from celery.signals import beat_init

        from executions.signals import woken
        from tasks import heartbeat, schedule, wakeup

        woken.connect(wakeup.send_tick, dispatch_uid="tasks.wakeup")
        beat_init.connect(schedule.follow_environment, dispatch_uid="tasks.schedule")
        heartbeat.connect()
