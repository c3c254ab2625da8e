# demo   the story, with a real Envoy; ONCE=1 ends after it
# test   everything: format, lints, cargo-deny, all tests, end to end with a real Envoy included, fuzz-smoke
# check  the quick part: format, lints, unit tests
# fuzz   each fuzz target for FUZZ_SECONDS (300), as many at once as there are cores; fuzz-smoke: 20 seconds each
# bench  the core's benchmarks, its gates by instructions (valgrind) and the end-to-end ratios, ten minutes (docs/performance.md)
# faults the fault harness, 10^5 calls against a real Envoy, ten minutes (docs/security.md)
SHELL := /bin/bash
CARGO := cargo
# nextest gives each test its own process; without it cargo's own runner does.
RUN := $(shell command -v cargo-nextest >/dev/null 2>&1 && echo "nextest run" || echo "test")

.PHONY: demo test check lint bench faults fuzz fuzz-smoke tools deny clean-tools help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \([a-z]*  .*\)/\1/p' Makefile

# The dev profile: it builds in a fraction of the release profile's time, and the story is about decisions, not speed.
demo:
	@scripts/tools.sh demo
	$(CARGO) build --locked
	exec target/debug/portcullis demo $(if $(filter 1,$(ONCE)),--once)

# The test runner goes last, so that its summary is what stands at the end.
test: lint tools deny fuzz-smoke
	$(CARGO) test --locked --doc --quiet
	$(CARGO) $(RUN) --locked --lib --bins --tests --no-fail-fast

fuzz: tools
	@scripts/fuzz.sh $(or $(FUZZ_SECONDS),300)

fuzz-smoke: tools
	@scripts/fuzz.sh 20

check: lint
	$(CARGO) $(RUN) --locked --lib --bins

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --quiet -- -D warnings

bench:
	@scripts/tools.sh demo
	$(CARGO) bench --locked --bench core
	$(CARGO) bench --locked --bench core -- --instructions
	$(CARGO) bench --locked --bench bounds
	$(CARGO) bench --locked --bench end_to_end

faults:
	@scripts/tools.sh demo
	$(CARGO) bench --locked --profile dev --bench faults

tools:
	@scripts/tools.sh

deny: tools
	@scripts/deny.sh

clean-tools:
	rm -rf .tools
