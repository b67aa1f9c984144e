# `make` prints what there is. Every target makes .venv first if it is missing or older than pyproject.toml.

PYTHON ?= python3
ARGS ?=
EXAMPLES ?= 20
SECONDS ?= 60

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The stamp holds the directory it was made for: a moved or copied clone has a .venv that points elsewhere.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-slow fuzz lint format bench clean java-needed java-wanted

help: ## Print this list
	@echo "earlyjoin: joins data while it is still arriving"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "PYTHON=python3.12 chooses another Python (3.11 or newer) for .venv; ARGS=\"...\" is handed on to the command that runs."

install: $(STAMP) ## Make .venv with the earlyjoin command and all that the other targets need

demo: java-wanted $(STAMP) ## Join two generated tables on Spark, beside plain Spark
	@$(BIN)/earlyjoin demo $(ARGS)

# worksteal, because test files differ much in length. Not loadgroup: pytest-xdist 3.8 ignores groups from pytest 9.2 on.
test: java-needed $(STAMP) ## Run the tests, without the slow ones
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

test-slow: java-needed $(STAMP) ## Run the slow tests, and the conformance suite with many more examples
	@$(BIN)/python -m pytest -m slow $(ARGS)
	@EARLYJOIN_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n 2 --dist worksteal tests/conformance

fuzz: $(STAMP) ## Random joins against DuckDB: SECONDS=60 SEED=7, or CASE=123456 to replay one
	@$(BIN)/python -m earlyjoin.report.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE))

lint: $(STAMP) ## Check rules, formatting, types and layers
	@tools/lint $(BIN)

format: $(STAMP) ## Format the code and repair what can be repaired
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: java-wanted $(STAMP) ## Measure against other engines, side by side
	@$(BIN)/earlyjoin bench $(ARGS)

clean: ## Remove .venv, builds and caches; the wheel cache outside stays
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf artifacts derby.log metastore_db spark-warehouse
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

java-needed:
	@tools/check-java

java-wanted:
	@tools/check-java --optional

$(STAMP): pyproject.toml
	@tools/install "$(PYTHON)" "$(VENV)"
	@printf '%s\n' "$(CURDIR)" > $@
