# Everything a developer or CI runs. `make test` on a bare Debian machine installs what it needs first.

VENV ?= .venv
JOBS ?= $(shell echo $$(( $$(nproc) + 1 )))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup java demo test check bench bench-quick format lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

setup: $(STAMP) java ## the virtual environment, the locked dependencies, Java

$(STAMP): pyproject.toml requirements.lock scripts/setup
	scripts/setup $(VENV)
	@touch $@

java:
	@scripts/java

demo: setup ## a shop with five views on Spark under a live writer; the pipeline is killed, every row is checked
	$(BIN)/everview demo

test: setup ## all tests, on all cores and one more (many wait for Java), and small experiments (PYTEST='-k name' for some, JOBS=0 for one after another)
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(PYTEST)
	$(if $(PYTEST),,$(BIN)/python -m bench --quick)

check: $(STAMP) ## format, lint, words, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python scripts/check-words
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup ## every experiment; rewrites docs/benchmarks; on a quiet machine
	$(BIN)/python -m bench

bench-quick: setup ## every experiment with small sizes: are the results right?
	$(BIN)/python -m bench --quick

format: $(STAMP) ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## resolve the ranges of pyproject.toml again into requirements.lock
	scripts/lock

clean: ## remove everything that can be made again
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
