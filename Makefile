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
# The SDK of VastDB wants an older pyarrow.
VENV_VASTDB := .venv-vastdb

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '  make %-19s %s\n' "$$name" "$$what"; done

.PHONY: demo
demo: ## build the command and run its demonstration
	$(CARGO) build --workspace --bin chunkyard
	$(TARGET_DIR)/debug/chunkyard demo

.PHONY: check
check: check-format check-lints check-docs check-dependencies check-types ## format, lints, documentation, dependencies, types

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

.PHONY: check-types
check-types: wheel-test ## mypy on the Python package, and its stubs against the module
	cd crates/python && ../../$(VENV)/bin/mypy
	cd crates/python && ../../$(VENV)/bin/python -m mypy.stubtest chunkyard._engine

.PHONY: test
test: test-rust test-s3 test-python test-vastdb ## all tests but those of `make test-dvid`, whose server takes minutes to build

.PHONY: test-rust
test-rust: ## cargo test for the workspace, documentation examples included
	$(CARGO) test --workspace

# Always the whole workspace and always the profile `dev`, the demonstration too: with fewer packages the dependencies have
# fewer features and are compiled again.
# What needs a server is ignored unless it is asked for; what takes minutes has `stress` in its name.
.PHONY: test-s3 test-in-bucket
test-s3: ## repository and store on a real S3 server, which is built first if need be
	scripts/with-s3-server $(MAKE) --no-print-directory test-in-bucket

# Faults at every operation are made in front of the store, and take minutes: a bucket sees them in `make stress`.
FAULTS := repo::bit_flips repo::crash repo::exhaustion repo::gc_beside repo::sleepers

test-in-bucket:
	$(CARGO) test --workspace --test main -- repo:: store:: $(addprefix --skip ,$(FAULTS))
	$(CARGO) test --workspace --test main -- --ignored s3:: --skip stress

.PHONY: test-dvid
test-dvid: ## the source over HTTP against a real DVID server, which is built first if need be: minutes, once
	testdata/dvid/make/with-dvid-server $(CARGO) test --workspace --test main -- --ignored dvid_live::

.PHONY: stress
stress: ## the tests that take minutes: many writers, killed processes, every flipped bit, bad networks
	$(CARGO) test --release --workspace --exclude chunkyard-hostile --lib --test main -- --ignored --test-threads 1 \
		--skip s3:: --skip dvid_live::
	scripts/with-s3-server $(CARGO) test --release --workspace --test main -- --ignored s3:: --test-threads 1
	scripts/with-s3-server $(CARGO) test --release --workspace --test main -- $(FAULTS)
	PROPTEST_RNG_SEED=$$RANDOM PROPTEST_CASES=2000 $(CARGO) test --release --workspace --test main -- \
		::model:: ::regions:: select:: convert::random store::fetch

.PHONY: fuzz
fuzz: $(FUZZ) ## every parser and decoder, FUZZ_SECONDS (60) each; fuzz/README.md has more
	scripts/fuzz $(FUZZ)

.PHONY: fuzz-seeds
fuzz-seeds: ## make fuzz/seeds anew, from the golden repository and the codecs
	rm -rf fuzz/seeds
	$(CARGO) test -p chunkyard-hostile --test main -- --ignored

.PHONY: bench
bench: bench-build ## ours and the rivals side by side, about eight minutes; bench/README.md has more
	bench/.venv/bin/python bench/run.py

.PHONY: bench-full
bench-full: bench-build ## the same with 1 GiB and 10^6 references
	bench/.venv/bin/python bench/run.py --full

.PHONY: bench-python
bench-python: bench-build ## the Python package and the rivals side by side, from Python
	bench/.venv/bin/python bench/run.py --python

.PHONY: bench-scale
bench-scale: bench-build ## ours alone with 10^7 references, 10^5 arrays, 10^4 commits
	bench/.venv/bin/python bench/scale.py

.PHONY: bench-build
bench-build: bench/.venv/.installed wheel
	$(CARGO) build --locked --release --workspace --bin chunkyard
	cd bench/ours && CARGO_TARGET_DIR=target $(CARGO) build --locked --release
	cd bench/zarrs && CARGO_TARGET_DIR=target $(CARGO) build --locked --release
	cd bench/array_format && CARGO_TARGET_DIR=target $(CARGO) build --locked --release
	if command -v go >/dev/null; then cd bench/badger && go build -trimpath -o target/badger-bench .; fi
	bench/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(TARGET_DIR)/wheels/*.whl

# Icechunk needs CPython 3.12 or later.
bench/.venv/.installed: bench/requirements.txt
	$$(scripts/find-python 3.12) -m venv bench/.venv
	bench/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: test-python
test-python: wheel-test browser ## the package, and what other programs make of our files, in Python
	$(CARGO) test --quiet --workspace --test main --no-run
	CHUNKYARD_BIN="$(abspath $(TARGET_DIR))/debug/chunkyard" $(VENV)/bin/pytest -q tests/python
	cd crates/python && ../../scripts/with-s3-server ../../$(VENV)/bin/pytest -q tests/test_s3.py
	cd crates/python && ../../$(VENV)/bin/pytest -q --ignore tests/test_s3.py
	cd crates/python && ../../$(VENV)/bin/pytest -q --doctest-modules --pyargs chunkyard
	scratch=$$(mktemp -d) && cd "$$scratch" && $(abspath $(VENV))/bin/pytest -q -p no:cacheprovider \
		--doctest-glob='*.md' $(abspath README.md docs/python.md) && rm -rf "$$scratch"

.PHONY: test-browser
test-browser: wheel-test browser ## the real Neuroglancer in a browser, against a running server
	$(CARGO) build --workspace --bin chunkyard
	CHUNKYARD_BIN="$(abspath $(TARGET_DIR))/debug/chunkyard" $(VENV)/bin/pytest -q tests/python/test_browser.py

# The client of Neuroglancer is a folder of its package; none of what that needs in Python is used.
.PHONY: browser
browser: $(VENV)/.installed
	scripts/find-browser
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/python/viewer.txt

.PHONY: test-vastdb
test-vastdb: wheel-test $(VENV_VASTDB)/.installed ## the sink for VastDB: the real SDK against a server that speaks its protocol
	$(VENV_VASTDB)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(TARGET_DIR)/wheels-test/*.whl
	$(CARGO) build --workspace --bin chunkyard
	CHUNKYARD_BIN="$(abspath $(TARGET_DIR))/debug/chunkyard" $(VENV_VASTDB)/bin/pytest -q tests/vastdb

# The wheel of the tests is built with the profile of the tests, whose dependencies are compiled already.
.PHONY: wheel-test
wheel-test: $(VENV)/.installed
	rm -rf $(TARGET_DIR)/wheels-test
	cd crates/python && ../../$(VENV)/bin/maturin build --quiet --profile dev --out "$(abspath $(TARGET_DIR))/wheels-test"
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(TARGET_DIR)/wheels-test/*.whl

.PHONY: wheel
wheel: $(VENV)/.installed ## build the Python wheel for release, into target/wheels
	rm -rf $(TARGET_DIR)/wheels
	cd crates/python && ../../$(VENV)/bin/maturin build --release --out "$(abspath $(TARGET_DIR))/wheels"

.PHONY: lock
lock: ## requirements.txt of the tests anew from each requirements.in
	for folder in tests/python tests/vastdb; do \
		$(PYTHON) -m venv --clear .tools/lock; \
		.tools/lock/bin/pip install --quiet --disable-pip-version-check -r $$folder/requirements.in; \
		{ echo '# The lock of requirements.in, made by `make lock`. CPython 3.11 or later.'; \
			.tools/lock/bin/pip freeze; } > $$folder/requirements.txt; \
	done

$(VENV)/.installed: tests/python/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(VENV_VASTDB)/.installed: tests/vastdb/requirements.txt
	$(PYTHON) -m venv --clear $(VENV_VASTDB)
	$(VENV_VASTDB)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(DENY):
	$(CARGO) install cargo-deny --debug --locked --version =$(DENY_VERSION) \
		--root .tools/cargo-deny-$(DENY_VERSION) --target-dir .tools/build
	rm -rf .tools/build

$(FUZZ):
	$(CARGO) install cargo-fuzz --locked --version =$(FUZZ_VERSION) \
		--root .tools/cargo-fuzz-$(FUZZ_VERSION) --target-dir .tools/build
	rm -rf .tools/build
