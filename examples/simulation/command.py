"""`python -m examples.simulation`: reports of invented runners, and whether every status is true after them."""

import secrets
import signal
import threading
import time
from typing import Any

from django.core.management import BaseCommand, CommandParser

from examples.simulation.demo import demo
from examples.simulation.options import rate, seconds, share, vendors
from examples.simulation.plan import VENDORS, Mix, plan
from examples.simulation.queue_state import NotDrained, describe, wait_until_drained
from examples.simulation.runners import Runners, create_executions
from examples.simulation.screen import Screen, render
from examples.simulation.verdict import Result, judge
from harbor_refresh.executions.conf.startup import OURS
from harbor_refresh.executions.management.command import count
from harbor_refresh.executions.management.output import Answer, Failed, Misused, errors_in_one_line, print_answer

MOST_TASKS = 1_000_000

NUMBERS = {
    "executions": (100_000, "how many to create"),
    "tasks": (10_000, "tasks an execution"),
    "runners": (64, "runners that report at once"),
}
SHARES = {
    "errors": "share of tasks that end with Error",
    "retries": "share of tasks that fail and are run again",
    "stops": "share of executions that are stopped",
    "duplicates": "share of reports that come twice",
    "late": "share of reports that come late",
    "reordered": "share of reports that change places with the next",
}


class Command(BaseCommand):
    requires_system_checks = (OURS,)

    help = (
        "Create executions and report their tasks as many runners would: with errors, "
        "retries, stops, and with reports that come twice, late and out of order. Then wait for "
        "the queue to drain and tell whether every status is true. Exit 0 if so, 1 if not."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add, mix = parser.add_argument, Mix()
        for name, (most, text) in NUMBERS.items():
            default = getattr(mix, name)
            shown = f"{text}; default: {default}"
            add(f"--{name}", type=count(1, most), default=default, metavar="N", help=shown)
        for name, text in SHARES.items():
            default = getattr(mix, name)
            shown = f"{text}; default: {default}"
            add(f"--{name}", type=share, default=default, metavar="SHARE", help=shown)
        text = f"vendor types to choose from; default: {','.join(VENDORS)}"
        add("--vendors", type=vendors, default=VENDORS, metavar="A,B,…", help=text)
        text = "the same seed gives the same reports; default: any, and it is told"
        add("--seed", type=count(0, 2**63), metavar="N", help=text)
        text = "reports a second; default: 0, as fast as possible"
        add("--rate", type=rate, default=0.0, metavar="N", help=text)
        text = "seconds the queue may take to drain; default: 120"
        add("--timeout", type=seconds, default=120.0, metavar="S", help=text)
        add("--json", action="store_true", help="print JSON")
        text = "slow traffic without an end, as `make up` shows it; of the other options only --seed is used"
        add("--demo", action="store_true", help=text)

    def handle(self, **options: Any) -> None:
        seed = secrets.randbelow(2**31) if options["seed"] is None else options["seed"]
        if options["demo"]:
            self._demo(seed)
            return
        if options["executions"] * options["tasks"] > MOST_TASKS:
            raise Misused(f"--executions times --tasks is above {MOST_TASKS:,}; lower one of them.")
        names = (*NUMBERS, *SHARES, "vendors")
        mix = Mix(seed=seed, **{name: options[name] for name in names})
        screen = Screen(quiet=options["json"])
        screen.say(f"Seed {seed}; repeat the same reports with --seed {seed}")
        try:
            with errors_in_one_line():
                result = simulate(mix, options["rate"], options["timeout"], screen)
        except KeyboardInterrupt:
            raise Failed("interrupted; what has been reported stays.") from None
        answer = Answer(result.as_json(), render(result), result.complaint)
        print_answer(answer, self.stdout, as_json=options["json"])

    def _demo(self, seed: int) -> None:
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            # in another thread, because this one may be inside ended.wait, and would wait for itself
            signal.signal(number, lambda *_: threading.Thread(target=ended.set).start())

        def sleep(seconds: float) -> None:
            """End the demo here if it was asked to: between two acts, never in the middle of a commit."""
            if ended.wait(seconds):
                raise KeyboardInterrupt

        self.stdout.write(f"Demo traffic with seed {seed}; end it with Ctrl-C")
        self.stdout.flush()
        try:
            demo(seed, self.stderr.write, sleep)
        except KeyboardInterrupt:
            self.stdout.write("Demo traffic ended")


def simulate(mix: Mix, rate: float, timeout: float, screen: Screen) -> Result:
    """Plan, create, report, wait for the queue, judge. A queue that does not drain is judged as well."""
    todo = plan(mix)
    with screen.bar("Creating", mix.executions) as progress:
        created = create_executions(todo, progress)
    began = time.monotonic()
    with screen.bar("Reporting", len(todo)) as progress:
        tally = Runners(todo, created, rate=rate, patience=timeout).run(progress)
    reported = time.monotonic()
    failure = ""
    with screen.waiting("Draining") as show:
        try:
            wait_until_drained(timeout, lambda stats: show(describe(stats)))
        except NotDrained as exc:
            failure = str(exc)
    times = (reported - began, time.monotonic() - reported)
    return judge(todo, created, tally, failure=failure, times=times)
