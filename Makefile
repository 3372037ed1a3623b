# The things people type. Each target makes `.venv` first if it is missing or out of date.

VENV := .venv
PYTHON := $(VENV)/bin/python
# What `make up` needs is a fifth of what the tests and the tools need.
STAMP := $(VENV)/.installed
UP := $(VENV)/.up
RELEASE := $(VENV)/.release
PACKAGES := harbor_refresh settings benchmarks examples manage.py docs/hooks.py
ARGS ?=
SEED ?= 1 2 3
SEEDS ?= $(SEED)
MINUTES ?= 1
EXAMPLES ?= 300

# Without these, an activated environment or somebody's PYTHONPATH would leak into ours, and each process that a test
# starts would compile all our code again.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

# uv downloads and installs in parallel. It ignores pip's own settings, for example a mirror, so if uv cannot be
# had or fails, pip installs.
UV := uv==0.13.9
define install
	@echo "Installing $(1) into $(VENV)"
	@{ $(PYTHON) -m pip install -qq $(UV) \
		&& $(VENV)/bin/uv pip install -q --system-certs --python $(PYTHON) --requirement $(1); } 2>/dev/null \
		|| $(PYTHON) -m pip install -qq --requirement $(1)
	@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help up test test-stock test-matrix slow fuzz soak lint docs bench package pictures password clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: $(UP)  ## start everything on this machine, with demo traffic; Ctrl-C ends it
	@exec $(PYTHON) -m harbor_refresh.local up

# In the order of tests/conftest.py: the files with the longest tests come first.
test: $(STAMP)  ## run the tests but the slow ones, on all cores; ARGS="-k name" picks some, "-n 0 -s" shows what they print
	@exec $(PYTHON) -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

slow: $(STAMP)  ## run the tests that `make test` leaves out: benchmarks, older designs, random kills, others that take long
	@exec $(PYTHON) -m pytest -m slow -n auto --dist loadfile $(ARGS)

test-stock: $(STAMP)  ## run them on the PostgreSQL and the Redis of the distribution, as users have them
	@exec $(PYTHON) -m tests.stock $(ARGS)

test-matrix: $(STAMP)  ## run them with each Python of this machine and the newest Django it takes; ARGS="--python 3.13 tests/unit"
	@exec $(PYTHON) -m tests.matrix $(ARGS)

soak: $(STAMP)  ## random faults: MINUTES (1) of them for each of SEEDS ("1 2 3"), then what must hold; ARGS="--help"
	@exec $(PYTHON) -m tests.soak $(SEEDS) --minutes $(MINUTES) $(ARGS)

fuzz: $(STAMP)  ## try every operation of the API with EXAMPLES (300) random requests, and with each boundary
	@FUZZ_EXAMPLES=$(EXAMPLES) exec $(PYTHON) -m pytest -n auto tests/integration/service/test_api_description.py $(ARGS)

# The settings of production are checked with values of their own, so that nothing of this
# machine's environment decides the outcome.
lint: $(STAMP)  ## style, types, import directions, production settings, missing migrations, locks of migrations
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy $(PACKAGES)
	$(PYTHON) -m pytest -q tests/unit/test_imports.py tests/integration/executions/test_locks_of_migrations.py
	@echo "manage.py check --deploy, manage.py makemigrations --check"
	@export DJANGO_SETTINGS_MODULE=settings.production ALLOWED_HOSTS=harbor-refresh.example \
		DATABASE_URL=postgresql://postgres@127.0.0.1:1/none REDIS_URL=redis://127.0.0.1:1/0 \
		SECRET_KEY="$$($(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(64))')" \
		&& $(PYTHON) manage.py check --deploy --fail-level WARNING \
		&& $(PYTHON) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

docs: $(STAMP)  ## build the site of the documentation in .site, and fail at a link without a target
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet
	@echo "Open .site/index.html"

bench: $(STAMP)  ## measure every strategy and the HTTP API, in a few minutes; ARGS="--executions N" and more: python -m benchmarks --help
	@$(PYTHON) -m benchmarks $(or $(ARGS),--executions 10000 --budget 25)
	@$(if $(ARGS),,$(PYTHON) -m benchmarks intake --executions 20000 --rounds 20)
	@$(if $(ARGS),,$(PYTHON) -m benchmarks hooks --executions 500 --tasks-per-execution 1)

package: $(RELEASE)  ## build the wheel and the sdist in dist/, and check what a package index would show of them
	@rm -rf build dist && $(PYTHON) -m build . >/dev/null && rm -rf build
	@$(PYTHON) -m twine check --strict dist/*

pictures: $(STAMP)  ## renew the pictures of the admin in docs/images, with Chromium
	@exec $(PYTHON) -m pytest -q -n 0 -m pictures tests/browser/test_pictures.py $(ARGS)

password: $(UP)  ## set a new password for the admin account of a running `make up`
	@[ -e .local/up.json ] || { echo "Start \`make up\` first: its database has the account."; exit 1; }
	@exec $(PYTHON) manage.py changepassword admin

clean:  ## remove .venv, the caches, and the data of `make up`
	@if [ -e $(UP) ] && [ -d .local ]; then $(PYTHON) -m harbor_refresh.local forget; fi
	rm -rf $(VENV) dist .site .mypy_cache .ruff_cache .hypothesis .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python that is new enough and can make an environment. It is run, not only looked up:
# a version manager's stand-in may exist for a version that is not selected.
$(PYTHON):
	@old=; bare=; \
	for name in python3.13 python3.12 python3.11 python3; do \
		"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
			|| { command -v "$$name" >/dev/null && old="$$name"; continue; }; \
		"$$name" -c 'import ensurepip, venv' 2>/dev/null || { bare="$$name"; continue; }; \
		echo "Making $(VENV) with $$("$$name" -V)"; \
		exec "$$name" -m venv --clear $(VENV); \
	done; \
	if [ -n "$$bare" ]; then \
		package=$$("$$bare" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		echo "$$bare cannot make a virtual environment: its modules venv and ensurepip are" \
			"missing. On Debian or Ubuntu: apt-get install $$package" >&2; \
	elif [ -n "$$old" ]; then \
		echo "Python 3.11 or newer is needed, and $$old is older or does not run." \
			"On Debian 12 or newer: apt-get install python3 python3-venv" >&2; \
	else \
		echo "Python 3.11 or newer is needed, and no Python was found on PATH." \
			"On Debian 12 or newer: apt-get install python3 python3-venv" >&2; \
	fi; \
	exit 1

$(UP): requirements.txt requirements-up.txt $(PYTHON)
	$(call install,requirements-up.txt)

$(RELEASE): requirements-release.txt $(PYTHON)
	$(call install,requirements-release.txt)

$(STAMP): requirements.txt requirements-up.txt requirements-dev.txt $(PYTHON)
	$(call install,requirements-dev.txt)
	@touch $(UP)
