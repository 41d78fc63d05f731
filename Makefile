# The two commands of the README, and what they are made of. One build profile and one target folder serve all.

CARGO ?= cargo
PREFIX ?= $(HOME)/.local
DEMO_STATE ?= demo-state
WORLDS ?= 20000
STAGE := $(CURDIR)/target/debug

.PHONY: $(shell sed -n "s/^\([a-z0-9-]*\):.*/\1/p" $(firstword $(MAKEFILE_LIST)))

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: build ## Train the quickstart sweep on this machine and show its table
	$(STAGE)/togl run sweeps/quickstart.yaml --state $(DEMO_STATE) --web=127.0.0.1:0

test: tools check unit doctest e2e chaos ## Everything that must hold; what CI runs
	@deploy/skipped

bootstrap: ## Find or fetch libtorch
	@deploy/bootstrap

# Tests too: their dependencies switch on features, and building without them first would build polars twice.
build: bootstrap ## Build everything
	$(CARGO) build --workspace --all-targets

check: fmt scripts clippy ## Formatting, lints and scripts

tools: bootstrap ## Install what the tests need and this machine lacks
	@deploy/tools

fmt:
	$(CARGO) fmt --all --check

scripts:
	for script in .ci/run $$(grep -rlI '^#!/usr/bin/env bash' deploy); do \
		bash -n $$script || exit 1; done
	for script in $$(grep -rlI '^#!/usr/bin/env python3' deploy) deploy/*/*.py; do \
		python3 -c "import ast, sys; ast.parse(open(sys.argv[1]).read())" $$script || exit 1; done
	PYTHONDONTWRITEBYTECODE=1 python3 deploy/python/tests/test_package.py
	PYTHONDONTWRITEBYTECODE=1 python3 deploy/python/tests/test_program.py

clippy: bootstrap
	$(CARGO) clippy --workspace --all-targets -- --deny warnings

unit: tools build
	$(CARGO) nextest run --workspace --no-fail-fast

doctest: bootstrap
	$(CARGO) test --workspace --doc --quiet

e2e: build ## Real processes, killed midway; the table must not change
	deploy/end-to-end

chaos: build ## Coordinator and workers killed and stopped at random for a while; the table must not change
	deploy/chaos

chaos-postgres: build ## The same with the store in PostgreSQL, whose sessions are killed, too
	deploy/chaos 50 "$$(date +%s)" postgres

# On the stable compiler, without cargo-fuzz: these are the flags that libFuzzer needs to see which code ran.
FUZZ_SECONDS ?= 60
FUZZ_CRATES ?= worker/data proto coordinator analysis
FUZZ_TARGETS ?= tu idx cifar graph6 copy worker_message lease store result parquet arrow csv ndjson
# A whole store fits; what other targets begin with is far shorter and grows slowly.
FUZZ_LENGTH ?= 262144
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS = -Cpasses=sancov-module -Ccodegen-units=1 --cfg=fuzzing \
	$(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table)

fuzz: ## Fuzz the readers of data files, messages, stores and saved folds, FUZZ_SECONDS each
	for crate in $(FUZZ_CRATES); do \
		RUSTFLAGS="$(FUZZ_FLAGS)" $(CARGO) build --manifest-path $$crate/fuzz/Cargo.toml \
			--target-dir target/fuzz --target $(FUZZ_HOST) || exit 1; \
		for target in $(FUZZ_TARGETS); do \
			test -f $$crate/fuzz/fuzz_targets/$$target.rs || continue; \
			mkdir -p target/fuzz/corpus/$$target; \
			target/fuzz/$(FUZZ_HOST)/debug/$$target target/fuzz/corpus/$$target $$crate/fuzz/corpus/$$target \
				-max_total_time=$(FUZZ_SECONDS) -max_len=$(FUZZ_LENGTH) -rss_limit_mb=2048 \
				-artifact_prefix=target/fuzz/$$target- || exit 1; \
		done; \
	done

# Only the coordinator and the agent are needed, so neither libtorch nor the tables are built.
soak: ## Many more simulated worlds than `make test` runs (WORLDS=20000)
	TOGL_WORLDS=$(WORLDS) $(CARGO) nextest run -p togl-coordinator --test worlds --no-fail-fast

# The same programs that users get; what is measured, and in which environment variables, stands at the top of the script.
bench: bootstrap ## Measure everything of docs/benchmarks.md, a dated table in target/bench (ONLY=dispatch,tables; FORCE=1 on a busy machine)
	$(CARGO) build --release --workspace --bins --examples
	ONLY="$(ONLY)" FORCE="$(FORCE)" deploy/bench/all

install: bootstrap ## Build for release and install programs and libtorch under PREFIX
	TOGL_COMMIT=$$(git rev-parse --short=12 HEAD 2>/dev/null) $(CARGO) build --release --locked --workspace --bins
	deploy/install "$(PREFIX)"

release: ## Set the version, date the changelog, tag and pack: make release VERSION=x.y.z
	deploy/release "$(VERSION)"

dist: bootstrap ## Pack a release into dist/: wheel, tarball, licences, bill of materials, checksums
	deploy/dist

dist-twice: bootstrap ## Pack a release twice, in two folders; the bytes must be the same (an hour on two cores)
	deploy/test-dist twice

test-wheel: bootstrap ## Install the packed wheel in an empty environment and in a bare system, and train with it
	deploy/test-dist wheel

test-release: ## Make a release in a clone, after all that must be refused (FULL=1 packs for real)
	deploy/test-release

test-images: bootstrap ## Build the container images from dist/ and train in them (installs podman and mmdebstrap)
	deploy/test-images

# Chromium, fonts and the Python packages are installed where that is possible; otherwise it says that it was skipped.
test-browser: build ## The page in a real Chromium; pictures go to target/screenshots
	deploy/browser-tools
	deploy/browser

fuzz-api: build ## Fuzz the API of the page with schemathesis
	deploy/browser-tools
	deploy/fuzz-api

test-programs: build ## Train the examples of programs, kill a worker in the middle (installs scikit-learn and PyTorch into target/programs-venv)
	deploy/test-programs

test-notebook: build ## Execute the notebook about programs (installs Jupyter into target/notebook-venv)
	deploy/test-notebook

test-hosts: build ## `togl hosts` against four sshd in network namespaces, one without disk, one that hangs
	deploy/test-hosts

test-network: build ## Coordinator and two worker hosts in network namespaces: cut links, lost hosts, a shared home
	deploy/test-network

test-units: bootstrap ## Start the systemd units from dist/ under a real systemd (systemd-nspawn) and train
	deploy/test-units

test-versions: build ## Programs of an older commit with those of today (OLD=COMMIT, else the newest release)
	deploy/test-versions $(OLD)

test-standby: build ## Two coordinators on one PostgreSQL, the active one killed and stopped; the table must not change
	deploy/test-standby

test-storage: build ## Checkpoints in real S3-compatible storage: a killed worker, wrong keys, storage that goes away (builds s3s-fs, installs moto)
	deploy/test-storage

test-kubernetes: build ## Validate deploy/kubernetes strictly and offline, and start what its pods start (fetches a validator)
	deploy/test-kubernetes

test-slurm: build ## Workers that a real Slurm starts, on loopback, with all that goes wrong there (as root; installs slurm-wlm and munge)
	deploy/test-slurm

book: build ## The documentation as a site, in target/book; the reference is made from the programs
	deploy/book-tools
	deploy/book

tutorial: build ## Do what docs/tutorial.md says, word for word (PICTURES=pictures makes its pictures again)
	deploy/book-tools
	deploy/tutorial $(PICTURES)

# A hundred thousand folds, then a million; ten pages and ten terminals. Half an hour on two cores.
soak-web: build ## Measure the page on large stores: time, memory, what watching costs the coordinator
	deploy/browser-tools
	deploy/soak-web

test-exports: build ## Read exports back with a real MLflow server and TensorBoard's own reader (fetches both from PyPI)
	deploy/test-exports

clean: ## Remove what was built and what the demo made
	$(CARGO) clean
	rm -rf $(DEMO_STATE)
