# `make` alone lists the targets. `make check test` is exactly what continuous integration runs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
PYTHON ?= python3
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

DENY_VERSION := 0.20.2
# The version is part of the path, so a new pin installs itself.
DENY := .tools/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
FUZZ_VERSION := 0.13.2
FUZZ := .tools/cargo-fuzz-$(FUZZ_VERSION)/bin/cargo-fuzz
VENV := .venv

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '  make %-19s %s\n' "$$name" "$$what"; done

.PHONY: demo
demo: ## build the release binary and run its demonstration
	$(CARGO) build --release -p chunkyard-cli
	$(TARGET_DIR)/release/chunkyard demo

.PHONY: check
check: check-format check-lints check-docs check-dependencies ## format, lints, documentation, dependencies

.PHONY: check-format
check-format: ## cargo fmt, changing nothing
	$(CARGO) fmt --all --check

.PHONY: check-lints
check-lints: ## clippy on all targets, warnings are errors, the lock file is current
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

.PHONY: check-docs
check-docs: ## build the documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

.PHONY: check-dependencies
check-dependencies: $(DENY) ## licences, bans, sources and advisories of all dependencies
	scripts/check-dependencies $(DENY)

.PHONY: test
test: test-rust test-python ## all tests

.PHONY: test-rust
test-rust: ## cargo test for the workspace, documentation examples included
	$(CARGO) test --workspace

.PHONY: stress
stress: ## the tests that take minutes: many writers, killed processes, every flipped bit
	$(CARGO) test --release -p chunkyard-engine --lib --test main -- --ignored --test-threads 1
	PROPTEST_CASES=2000 $(CARGO) test --release -p chunkyard-engine --test main -- repo::model

.PHONY: fuzz
fuzz: $(FUZZ) ## every parser and decoder, FUZZ_SECONDS (60) each; fuzz/README.md has more
	scripts/fuzz $(FUZZ)

.PHONY: fuzz-seeds
fuzz-seeds: ## make fuzz/seeds anew, from the golden repository and the codecs
	rm -rf fuzz/seeds
	$(CARGO) test -p chunkyard-hostile --test main -- --ignored

.PHONY: bench
bench: bench/.venv/.installed ## ours and the rivals side by side, short; bench/README.md has more
	cd bench/ours && CARGO_TARGET_DIR=target $(CARGO) build --release
	bench/.venv/bin/python bench/run.py

# Icechunk needs CPython 3.12 or later.
bench/.venv/.installed: bench/requirements.txt
	$$(scripts/find-python 3.12) -m venv bench/.venv
	bench/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: test-python
test-python: $(VENV)/.installed ## read a repository with pyarrow and NumPy, none of our code
	$(CARGO) build -p chunkyard-cli
	CHUNKYARD_BIN="$(abspath $(TARGET_DIR))/debug/chunkyard" $(VENV)/bin/pytest -q tests/python

$(VENV)/.installed: tests/python/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(DENY):
	$(CARGO) install cargo-deny --locked --version =$(DENY_VERSION) \
		--root .tools/cargo-deny-$(DENY_VERSION) --target-dir .tools/build
	rm -rf .tools/build

$(FUZZ):
	$(CARGO) install cargo-fuzz --locked --version =$(FUZZ_VERSION) \
		--root .tools/cargo-fuzz-$(FUZZ_VERSION) --target-dir .tools/build
	rm -rf .tools/build
