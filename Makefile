# The menu. Every command makes the environment it needs, from the locks in requirements/, and does so only once.
#
#   make run      the gateway and its page, with the demo agent and the installed ones; without a terminal, a short session through it
#   make test     all tests of this project, fast ones first            (make test ARGS="-k framing")
#   make prove    what the programs of others can break: second versions of the CLIs, third-party agents, official SDKs
#   make evidence the same, and write what was seen into the evidence pages
#   make check    format, lint, types, import contracts, limits of the source tree
#   make bench    benchmarks
#   make bench-gateway   those of the gateway and the bridge, at a client's socket; on a quiet machine
#   make bench-fleet   those of the fleet: brokers, workers and gateways as processes; on a quiet machine
#   make fleet-faults    random faults against fleets of real processes, written to docs/evidence/fleet.md   (SEEDS=200 LANES=2)
#   make docs     the documentation as a site, in build/site, checked
#   make docs-serve   the same on 127.0.0.1:8000, built again when a page changes
#   make zed-extension   the extension for Zed, in dist/zed   (REPOSITORY=https://… where its archives will be)
#   make format   let ruff rewrite what it can
#   make lock     resolve the locks again               (needs uv; LOCK_ARGS=--upgrade for newer versions)
#   make clean    remove environments, caches and builds
#
# uv is used where it is installed, else venv and pip. PYTHON=... chooses the interpreter, VENV=... the folder.

# Kept to what GNU make 3.81 understands, because that is the one macOS has.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-fast prove evidence peers thirdparty check format bench bench-gateway bench-fleet lock clean env fleet-faults zed-extension docs docs-serve

VENV ?= .venv
LOCK ?= requirements/dev.txt
JOBS ?= 2
LOCK_ARGS ?=
REPOSITORY ?=
SEEDS ?= 200
LANES ?= 2
ARGS ?=
PYTHON ?=

CODE := $(wildcard src tests tools benchmarks examples packages)
DEV := $(VENV)/bin/python
TESTING := env -u PYTHONDONTWRITEBYTECODE PYTHONWARNDEFAULTENCODING=1
PYTEST := $(TESTING) $(DEV) -m pytest

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

# --- environments ---------------------------------------------------------------------------------------------------

# The first interpreter that really starts and is new enough: a name on the PATH may be a shim with nothing behind it.
define find_python
python=""; \
for candidate in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python); do \
	if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		python="$$candidate"; break; \
	fi; \
done; \
if [ -z "$$python" ]; then \
	echo "error: no Python 3.11 or newer starts here" >&2; \
	echo "hint: install one, or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; \
	exit 1; \
fi
endef

# $(call new_environment,folder,locks): an environment with exactly what the locks say, made from nothing.
define new_environment
@$(find_python); \
if command -v uv >/dev/null 2>&1; then \
	echo "making $(1) with uv"; \
	uv venv --quiet --clear --python "$$python" "$(1)" && \
	uv pip install --quiet --python "$(1)/bin/python" --require-hashes $(patsubst %,-r %,$(2)); \
else \
	echo "making $(1) with venv and pip (uv is faster, where it is installed)"; \
	"$$python" -m venv --clear "$(1)" || { \
		echo "hint: on Debian and Ubuntu, venv is a package of its own: apt install python3-venv" >&2; exit 1; }; \
	"$(1)/bin/python" -m pip --disable-pip-version-check install --quiet --require-hashes $(patsubst %,-r %,$(2)); \
fi
@touch "$@"
endef

# $(call install_project,folder): the tree itself, editable. The back end is in the lock, so nothing else is fetched.
define install_project
@if command -v uv >/dev/null 2>&1; then \
	uv pip install --quiet --python "$(1)/bin/python" --no-deps --no-build-isolation --editable .; \
else \
	[ -x "$(1)/bin/pip" ] || "$(1)/bin/python" -m ensurepip >/dev/null; \
	"$(1)/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .; \
fi
@printf '%s\n' "$(CURDIR)" > "$(1)/.place" && touch "$@"
endef

# Two ways an environment goes bad: it was made in another place, whose tree it installs, or its Python is gone.
$(foreach place,$(wildcard .venv*/.place),$(shell \
	[ "$$(cat $(place))" = "$(CURDIR)" ] && [ -x $(dir $(place))bin/python ] || rm -f $(dir $(place)).locked))

$(VENV)/.locked: $(LOCK)
	$(call new_environment,$(VENV),$(LOCK))

.venv-run/.locked: requirements/serve.txt requirements/build.txt
	$(call new_environment,.venv-run,requirements/serve.txt requirements/build.txt)

.venv-bench/.locked: requirements/bench.txt
	$(call new_environment,.venv-bench,requirements/bench.txt)

# Another version of a package that $(VENV) has, and nothing of ours.
.venv-peers/.locked: requirements/peers.txt
	$(call new_environment,.venv-peers,requirements/peers.txt)
	@printf '%s\n' "$(CURDIR)" > .venv-peers/.place

# An agent that has its own version of almost everything, and wants Python 3.13: `thirdparty` finds one.
.venv-fast-agent/.locked: requirements/peers-fast-agent.txt
	$(call new_environment,.venv-fast-agent,requirements/peers-fast-agent.txt)
	@printf '%s\n' "$(CURDIR)" > .venv-fast-agent/.place

.venv-docs/.locked: requirements/docs.txt
	$(call new_environment,.venv-docs,requirements/docs.txt)
	@printf '%s\n' "$(CURDIR)" > .venv-docs/.place

$(VENV)/.ready: $(VENV)/.locked pyproject.toml
	$(call install_project,$(VENV))

.venv-run/.ready: .venv-run/.locked pyproject.toml
	$(call install_project,.venv-run)

.venv-bench/.ready: .venv-bench/.locked pyproject.toml
	$(call install_project,.venv-bench)

env: $(VENV)/.ready

# --- what people type -----------------------------------------------------------------------------------------------

# The shell outlives Ctrl C, else make would end with a line about it after the gateway has closed everything in order.
run: .venv-run/.ready
	@trap : INT; \
	if [ -t 0 ] && [ -t 1 ] && [ -z "$(ARGS)" ]; then .venv-run/bin/antiphon serve --open; \
	else .venv-run/bin/python examples/tour.py --serve $(ARGS); fi

# The peers written in JavaScript: the locks have no addresses, and npm comes with the environment. Without a registry
# the tests that need them skip and say so.
tests/interop/node_modules/.package-lock.json: tests/interop/package-lock.json | $(VENV)/.ready
	@if PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm --prefix tests/interop ci --silent --no-fund --no-audit; then touch "$@"; \
	else echo "npm could not install the peers of tests/interop: the tests that need them will skip" >&2; fi

# What checks the page: types, accessibility. Install scripts are not run.
PAGE_TOOLS := tests/web/node_modules/.package-lock.json
$(PAGE_TOOLS): tests/web/package-lock.json | $(VENV)/.ready
	@if PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm --prefix tests/web ci --silent --no-fund --no-audit --ignore-scripts; then touch "$@"; \
	else echo "npm could not install the tools of tests/web: the tests that need them will skip" >&2; fi

# An older Claude Code. Its package comes with a stub that an install script replaces by the program: we do that ourselves,
# because npm may be told to run no scripts.
CLAUDE_MODULES := tests/engines/claude/node_modules
$(CLAUDE_MODULES)/.package-lock.json: tests/engines/claude/package-lock.json | $(VENV)/.ready
	@if PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm --prefix tests/engines/claude ci --silent --no-fund --no-audit \
		--ignore-scripts; then \
		for program in $(CLAUDE_MODULES)/@anthropic-ai/claude-code-*/claude; do \
			if "$$program" --version >/dev/null 2>&1; then \
				ln -sf "../@anthropic-ai/$${program#*@anthropic-ai/}" $(CLAUDE_MODULES)/.bin/claude; touch "$@"; break; \
			fi; \
		done; \
	else echo "npm could not install the older Claude Code: the tests that need it will skip" >&2; fi

# A newer Codex. Its package starts the program with Node: the tests start the program itself.
CODEX_MODULES := tests/engines/codex/node_modules
$(CODEX_MODULES)/.package-lock.json: tests/engines/codex/package-lock.json | $(VENV)/.ready
	@if PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm --prefix tests/engines/codex ci --silent --no-fund --no-audit \
		--ignore-scripts; then \
		for program in $(CODEX_MODULES)/@openai/codex-*/vendor/*/bin/codex; do \
			if "$$program" --version >/dev/null 2>&1; then \
				ln -sf "../@openai/$${program#*@openai/}" $(CODEX_MODULES)/.bin/codex; touch "$@"; break; \
			fi; \
		done; \
	else echo "npm could not install the newer Codex: the tests that need it will skip" >&2; fi

# The examples of the official Python SDK, current and next: only its source archive has them, so it is fetched and unpacked.
# The locks have its hash; an environment that uv made has no pip of its own.
.sdk-examples/.ready: requirements/dev.txt requirements/peers.txt | $(VENV)/.ready
	@rm -rf .sdk-examples && mkdir .sdk-examples
	@[ -x "$(VENV)/bin/pip" ] || $(DEV) -m ensurepip >/dev/null
	@if for lock in dev peers; do \
		awk '/^[a-z]/ { sdk = /^agent-client-protocol==/ } sdk' requirements/$$lock.txt > .sdk-examples/$$lock.txt; \
		$(DEV) -m pip --disable-pip-version-check download --quiet --no-deps --no-binary=:all: --require-hashes \
			--dest .sdk-examples -r .sdk-examples/$$lock.txt || exit 1; done \
		&& for archive in .sdk-examples/*.tar.gz; do tar -xzf "$$archive" -C .sdk-examples || exit 1; done; then touch "$@"; \
	else echo "the examples of the Python SDK could not be fetched: the tests that need them will skip" >&2; fi

peers: tests/interop/node_modules/.package-lock.json .sdk-examples/.ready $(CLAUDE_MODULES)/.package-lock.json $(CODEX_MODULES)/.package-lock.json
	@$(MAKE) --silent --no-print-directory .venv-peers/.locked || \
		echo "the peers in requirements/peers.txt could not be installed: the tests that need them will skip" >&2

# Agents that others sell, each in an environment of its own. What cannot be installed is skipped by its tests, and said.
# Their install scripts are not run, and what npm calls optional (a clipboard, a terminal) is left out.
tests/thirdparty/node_modules/.package-lock.json: tests/thirdparty/package-lock.json | $(VENV)/.ready
	@if PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm --prefix tests/thirdparty ci --silent --no-fund --no-audit \
		--ignore-scripts --omit=optional; then touch "$@"; \
	else echo "npm could not install the agents of tests/thirdparty: the tests that need them will skip" >&2; fi

# The first Python 3.13 that really starts, where .ci/run looks too.
define find_python_313
newer=""; \
for candidate in python3.13 python3 "$$HOME"/.pyenv/versions/3.13.*/bin/python3 \
	/usr/bin/python3.13 /usr/local/bin/python3.13 /opt/homebrew/bin/python3.13 \
	"$$(uv python find --no-python-downloads 3.13 2>/dev/null)"; do \
	if "$$candidate" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 13))' >/dev/null 2>&1; then \
		newer="$$candidate"; break; \
	fi; \
done
endef

thirdparty: tests/thirdparty/node_modules/.package-lock.json
	@$(find_python_313); \
	if [ -z "$$newer" ]; then echo "fast-agent needs Python 3.13, and none starts here: its tests will skip" >&2; \
	else $(MAKE) --silent --no-print-directory .venv-fast-agent/.locked PYTHON="$$newer" || \
		echo "fast-agent could not be installed: its tests will skip" >&2; fi

# Compiled first, as an installed package is: hundreds of tests start us, and each would read and compile it all again.
define compile
@env -u PYTHONDONTWRITEBYTECODE $(DEV) -m compileall -q src
endef

test: $(VENV)/.ready $(PAGE_TOOLS)
	$(compile)
	@$(TESTING) $(DEV) tools/all_tests.py test $(JOBS) $(ARGS)

prove: $(VENV)/.ready peers thirdparty $(PAGE_TOOLS)
	$(compile)
	@$(TESTING) $(DEV) tools/all_tests.py prove $(JOBS) $(ARGS)

# On another Python less is enough: LOCK=requirements/test.txt
test-fast: $(VENV)/.ready
	$(compile)
	@$(TESTING) $(DEV) tools/all_tests.py fast $(JOBS) $(ARGS)

# The pages about engines have a line for each version of a CLI, so all their end-to-end tests run.
evidence: $(VENV)/.ready peers thirdparty
	$(compile)
	@ANTIPHON_INTEROP=write $(PYTEST) tests/interop tests/thirdparty tests/conformance/peers $(ARGS)
	@ANTIPHON_INTEROP=write $(PYTEST) -n $(JOBS) tests/engines/e2e tests/engines/claude/e2e tests/engines/codex/e2e $(ARGS)

check: $(VENV)/.ready
	$(DEV) -m ruff format --check $(CODE)
	$(DEV) -m ruff check $(CODE)
	$(DEV) -m mypy $(CODE)
	$(VENV)/bin/lint-imports --no-logo
	$(DEV) tools/source_tree.py

format: $(VENV)/.ready
	$(DEV) -m ruff format $(CODE)
	$(DEV) -m ruff check --fix $(CODE)

# Without what is optional: second copies of the programs that .venv-bench has, and that both sides are to drive.
benchmarks/node_modules/.package-lock.json: benchmarks/package-lock.json .venv-bench/.ready
	@PATH="$(CURDIR)/.venv-bench/bin:$$PATH" npm --prefix benchmarks ci --silent --no-fund --no-audit --omit=optional && touch "$@"

# Compiled first, as pip leaves an installed package: start-up is one of the lines. uv compiles nothing, and where
# PYTHONDONTWRITEBYTECODE is set each start would compile msgspec again: 9 ms of CPU time on top of our 41.
bench: .venv-bench/.ready benchmarks/node_modules/.package-lock.json
	@env -u PYTHONDONTWRITEBYTECODE .venv-bench/bin/python -m compileall -q src .venv-bench/lib
	.venv-bench/bin/python -m benchmarks $(ARGS)

# Both are run, whatever the first one finds; in the environment that can serve, next to the rivals' programs.
bench-gateway: $(VENV)/.ready benchmarks/node_modules/.package-lock.json
	@mkdir -p build
	-$(DEV) -m benchmarks.network --json build/network.json
	$(DEV) -m benchmarks.gateway --json build/gateway.json

bench-fleet: $(VENV)/.ready
	@mkdir -p build
	$(DEV) -m benchmarks.fleet --json build/fleet.json $(ARGS)

# Half a minute for each schedule and lane: what fails is named on the page, and its directory is kept.
fleet-faults: $(VENV)/.ready
	$(compile)
	@$(TESTING) $(DEV) -m tests.fleet.faults.evidence --seeds $(SEEDS) --lanes $(LANES)

# The pages are collected with the project's environment, which can import the package; the site is built in its own.
docs: $(VENV)/.ready .venv-docs/.locked
	@$(DEV) tools/docs_site.py build --mkdocs .venv-docs/bin/mkdocs

docs-serve: $(VENV)/.ready .venv-docs/.locked
	@$(DEV) tools/docs_site.py serve --mkdocs .venv-docs/bin/mkdocs

# Names, versions and hashes; never an address, so that everybody fetches from where they are used to fetch.
lock:
	@command -v uv >/dev/null 2>&1 || { echo "error: make lock needs uv" >&2; echo "hint: pip install uv" >&2; exit 1; }
	@for name in run serve build test dev docs peers peers-fast-agent bench; do \
		case $$name in peers-fast-agent) oldest=3.13 ;; *) oldest=3.11 ;; esac; \
		uv pip compile --quiet --universal --python-version $$oldest --generate-hashes --no-header --no-emit-index-url \
			$(LOCK_ARGS) requirements/$$name.in --output-file requirements/$$name.txt || exit 1; \
	done

clean:
	rm -rf .venv .venv-* .sdk-examples build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis benchmarks/node_modules tests/interop/node_modules tests/thirdparty/node_modules tests/web/node_modules $(CLAUDE_MODULES) $(CODEX_MODULES)
	find src tests tools benchmarks examples packages -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A folder to install in Zed or to publish, and an archive for each target beside it. Needs an index of packages.
zed-extension: $(VENV)/.ready
	@$(DEV) tools/zed_extension.py $(if $(REPOSITORY),--repository "$(REPOSITORY)")
