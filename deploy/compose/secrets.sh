#!/bin/sh
# Make the secrets of docker-compose.yml, once: secrets.sh [DIRECTORY], which is .secrets beside docker-compose.yml.
#
# The directory is private to its owner. The files in it can be read by every account, because the containers see each
# file as it is, and run as accounts that this machine may not have. A directory that exists is left as it is: new
# passwords would lock the service out of its data.
set -eu

directory=${1:-$(dirname "$0")/../../.secrets}
umask 077
mkdir "$directory"
cd "$directory"

random() {
    head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

postgres=$(random)
redis=$(random)
printf '%s' "$postgres" >postgres_password
printf '%s' "$redis" >redis_password
printf 'requirepass %s\n' "$redis" >redis.conf
printf 'postgresql://refresh:%s@postgres:5432/refresh' "$postgres" >database_url
printf 'redis://:%s@redis:6379/0' "$redis" >redis_url
random >secret_key
chmod 0644 ./*
echo "Made $(pwd): $(echo *)"
