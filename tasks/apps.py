from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "tasks"

    def ready(self) -> None:
        from celery.signals import beat_init, celeryd_after_setup

        from executions.signals import woken
        from tasks import alone, heartbeat, instances, run_cycle, schedule, wakeup

        woken.connect(wakeup.send_tick, dispatch_uid="tasks.wakeup")
        beat_init.connect(schedule.follow_environment, dispatch_uid="tasks.schedule")
        heartbeat.connect()
        celeryd_after_setup.connect(run_cycle.subscribe, dispatch_uid="tasks.run_cycle")
        alone.connect()
        instances.connect()
