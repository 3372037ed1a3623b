#!/bin/sh
# Start one program of the service:
#
#   start.sh web | worker | beat | flower [OPTION ...]   a program that runs until SIGTERM; options are added to its own
#   start.sh migrate                                     bring the database up to date, and end
#   start.sh migrated                                    wait until the database is up to date, for five minutes at most
#   start.sh manage COMMAND ...                          a command of manage.py
#
# Each program takes the place of this shell, so it gets the signals that are sent to it. python is that of PATH.
set -eu

cd "$(dirname "$0")/../.."

web() {
    # Bodies that arrive take memory and /tmp: docker-compose.yml and deploy/kubernetes have sizes for this many.
    # The workers' heartbeat files are in memory: on a slow disk gunicorn would take a sound worker for a dead one.
    exec python -m gunicorn -c python:harbor_refresh.logs.for_gunicorn \
        --bind "0.0.0.0:${WEB_PORT:-8000}" --workers "${WEB_WORKERS:-2}" --threads "${WEB_THREADS:-4}" \
        --worker-connections 250 --graceful-timeout 25 --no-control-socket --worker-tmp-dir /dev/shm \
        --access-logfile - \
        "$@" harbor_refresh.wsgi:application
}

# Nothing here needs the events that workers send to each other, whose number grows with the square of the workers'.
worker() {
    exec python -m celery -A harbor_refresh worker --concurrency "${WORKER_PROCESSES:-2}" \
        --without-gossip --without-mingle "$@"
}

beat() {
    exec python -m celery -A harbor_refresh beat --pidfile= "$@"
}

flower() {
    exec python -m celery -A harbor_refresh flower --conf=harbor_refresh/flower/flowerconfig.py \
        --address=0.0.0.0 --port="${FLOWER_PORT:-5555}" "$@"
}

# A shell that is process 1 ignores SIGTERM unless it has a trap, and runs the trap only when `wait` returns.
migrated() {
    trap 'exit 143' TERM INT
    tries=100
    until python manage.py migrate --check >/dev/null 2>&1; do
        tries=$((tries - 1))
        # the last time with the reason: what is missing, or why the database does not answer
        [ "$tries" -gt 0 ] || exec python manage.py migrate --check
        sleep 3 &
        wait $!
    done
}

program=${1:-}
[ $# -eq 0 ] || shift
case "$program" in
web | worker | beat | flower) "$program" "$@" ;;
migrate) exec python manage.py migrate --noinput "$@" ;;
migrated) migrated ;;
manage) exec python manage.py "$@" ;;
*)
    echo "usage: start.sh web | worker | beat | flower | migrate | migrated | manage COMMAND ..." >&2
    exit 2
    ;;
esac
