#!/bin/sh
# Install the service, as the image does. It needs no container engine:
#
#   install.sh packages VENV REQUIREMENTS ...   make the environment VENV with the python3 on PATH, and install these
#                                               files of requirements into it
#   install.sh application VENV                 prepare the source around this script: bytecode and static files
#
# The two steps are two layers of the image, so a change of the source installs no package again. Afterwards nothing
# needs to write below VENV or the source.
set -eu

cd "$(dirname "$0")/../.."

packages() {
    venv=$1
    shift
    for file in "$@"; do
        set -- "$@" --requirement "$file"
        shift
    done
    python3 -m venv "$venv"
    # wheels alone, because a package that must be compiled would need a compiler in this stage
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --only-binary :all: "$@"
    "$venv/bin/python" -m pip check --disable-pip-version-check
    "$venv/bin/python" -m pip uninstall --quiet --disable-pip-version-check --root-user-action=ignore --yes pip
    bytecode "$venv"
}

application() {
    venv=$1
    bytecode .
    # The settings of production demand these values. Nothing keeps them: they end with the command.
    DJANGO_SETTINGS_MODULE=settings.production ALLOWED_HOSTS=none.invalid \
        DATABASE_URL=postgresql://none.invalid/none REDIS_URL=redis://none.invalid/0 \
        SECRET_KEY="$("$venv/bin/python" -c 'import secrets; print(secrets.token_urlsafe(64))')" \
        "$venv/bin/python" manage.py collectstatic --noinput --verbosity 0
}

# Compile to bytecode that is used without a look at the time of its source, which a copy may change.
bytecode() {
    "$venv/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$1"
}

case "${1:-}:$#" in
packages:[3-9]) shift && packages "$@" ;;
application:2) application "$2" ;;
*)
    echo "usage: install.sh packages VENV REQUIREMENTS ... | install.sh application VENV" >&2
    exit 2
    ;;
esac
