"""The command line of the soak: run the seeds one after the other, each in its own process."""

import argparse
import subprocess
import sys

from tests.soak.plan import WEIGHTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Random faults, and what must hold.")
    parser.add_argument("seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, default=1, help="of faults and traffic")
    parser.add_argument(
        "--quiet", type=float, default=45, help="seconds without any run after which all must hold"
    )
    parser.add_argument("--without", action="append", default=[], choices=WEIGHTS, help="leave a fault out")
    parser.add_argument("--only", action="append", default=[], choices=WEIGHTS, help="leave all others out")
    parser.add_argument("--no-broker-keys", action="store_true", help="delete keys of ours alone")
    parser.add_argument("--keep", action="store_true", help="keep the folder of a seed that held, too")
    parser.add_argument(
        "--limit",
        type=int,
        default=0,
        help="start only jobs with one limit, so many at once, on a few more processes",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting")
    given = parser.parse_args()
    without = [name for name in WEIGHTS if name in given.without or (given.only and name not in given.only)]
    failed = []
    for seed in given.seeds:
        words = [str(seed), f"--seconds={60 * given.minutes}", f"--quiet={given.quiet}"]
        words += [f"--without={name}" for name in without] + [f"--set={one}" for one in given.set]
        words += [f"--limit={given.limit}"]
        words += ["--no-broker-keys"] * given.no_broker_keys + ["--keep"] * given.keep
        if subprocess.run([sys.executable, "-m", "tests.soak.seed", *words], check=False).returncode:
            failed.append(seed)
    if failed:
        sys.stdout.write(f"seeds that failed: {' '.join(map(str, failed))}\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
