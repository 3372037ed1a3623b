#!/bin/sh
# Say by the exit code whether a program of this container does its work:
#
#   health.sh [web | ready | worker | beat | flower]
#
# Without a word it is the program that process 1 runs, so one HEALTHCHECK serves every program of the image. `ready`
# asks a web process whether it may get requests. A program without a check (migrate, manage) is well while it runs.
set -eu

cd "$(dirname "$0")/../.."

# Return the last name of a program among the arguments of process 1, which is the program or an init before it.
of_process_1() {
    tr '\0' '\n' </proc/1/cmdline | sed -n 's/^harbor_refresh\.wsgi:application$/web/; /^\(web\|worker\|beat\|flower\)$/p' |
        tail -n 1
}

# Without a proxy of the environment: the address is this container's own.
answers() {
    exec python -c '
import sys
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

try:
    build_opener(ProxyHandler({})).open(sys.argv[1], timeout=10).read()
except HTTPError as refusal:
    sys.exit(f"{refusal}: {refusal.read(1000)!r}")
except OSError as exc:
    sys.exit(f"no answer: {exc}")
' "http://127.0.0.1:$1"
}

case "${1:-$(of_process_1)}" in
web) answers "${WEB_PORT:-8000}/healthz" ;;
ready) answers "${WEB_PORT:-8000}/readyz" ;;
flower) answers "${FLOWER_PORT:-5555}${FLOWER_URL_PREFIX:+/$FLOWER_URL_PREFIX}/healthcheck" ;;
worker | beat) exec python manage.py alive "${1:-$(of_process_1)}" ;;
"") ;;
*)
    echo "usage: health.sh [web | ready | worker | beat | flower]" >&2
    exit 2
    ;;
esac
