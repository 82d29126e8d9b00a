# Every verb sets up what it needs: `make demo` and `make test` work on a bare Python.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORPUS := $(abspath ../shared/corpus)
# Tests that need the shared corpus of real traces read this variable, and skip without it.
STEPCRIT_CORPUS ?= $(wildcard $(CORPUS))
export STEPCRIT_CORPUS
# How long each half of `make fuzz` goes on, and what else to tell the first.
SECONDS ?= 300
FUZZ ?=
# What to tell `make bench`.
BENCH ?=

.DEFAULT_GOAL := help
.PHONY: help demo test fixtures lint types coverage check bench validate fuzz sanitize golden clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.run: pyproject.toml scripts/build_kernels.py $(wildcard stepcrit/kernels/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.run ## set up, install, and analyze the trace shipped with the package
	$(BIN)/stepcrit demo

test: $(VENV)/.dev ## set up and run the whole test suite
	$(BIN)/python -m pytest -n 2

fixtures: $(VENV)/.run ## stepcrit check of this project's own traces, by [tool.stepcrit] in pyproject.toml
	$(BIN)/stepcrit check

lint: $(VENV)/.dev ## style, size budgets, import direction
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python scripts/check_size.py
	$(BIN)/lint-imports

types: $(VENV)/.dev ## mypy --strict
	$(BIN)/mypy

coverage: $(VENV)/.dev ## branch coverage of reading, linking and the graph; fails under 95 %
	$(BIN)/python -m pytest -n 2 -q tests/ingest tests/link tests/graph tests/known_bugs tests/golden tests/cli \
	  --cov=stepcrit.ingest --cov=stepcrit.link --cov=stepcrit.graph --cov-branch \
	  --cov-report=term:skip-covered --cov-fail-under=95

check: lint types fixtures test ## everything CI runs

bench: $(VENV)/.dev ## time and memory beside reading and peers, as ratios of one run. BENCH="--scaled 100,500,2000 --readme"
	$(BIN)/python scripts/bench.py $(BENCH)

validate: $(VENV)/.dev ## predictions against changes that were really made; writes the table into README
	$(BIN)/python scripts/validate.py --readme

fuzz: $(VENV)/.dev ## inputs nobody would write, for SECONDS (300), then `sanitize`; keeps what fails. FUZZ="--target reader"
	$(BIN)/python -W error scripts/fuzz.py --seconds $(SECONDS) $(FUZZ)
	$(BIN)/python scripts/fuzz_sanitized.py --seconds $(SECONDS)

sanitize: $(VENV)/.dev ## the compiled kernels under AddressSanitizer and UBSan, until SECONDS (300) are over
	$(BIN)/python scripts/fuzz_sanitized.py --seconds $(SECONDS)

golden: $(VENV)/.dev ## write the golden files anew; review them as a diff
	$(BIN)/python scripts/update_golden.py

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* dist
