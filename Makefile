# Two targets do everything on a fresh machine with Rust: `make demo` (1.89 or later) and `make test` (1.91 or later).

CARGO ?= cargo
OUT   ?= out/alamgir2002

.PHONY: demo check test sanitizers book cluster compare-runners quick setup lint deny bench fuzz geo-real dist semver clean

demo: ## reproduce alamgir2002 from the embedded data file; prints the path of the report
	$(CARGO) run --release --locked --quiet -p anabranch-cli -- reproduce alamgir2002 --out $(OUT)

quick: ## the same in about ten seconds, with fewer replications
	$(CARGO) run --release --locked --quiet -p anabranch-cli -- reproduce alamgir2002 --quick --out $(OUT)-quick

check: lint ## the fast tier: format, lints, unit tests; no root, no packages
	$(CARGO) test --locked --workspace --exclude anabranch-dcsctp-silent --lib --bins

# Some tests wait for emulated links or for a browser, so the scripts run at the same time.
test: setup lint deny ## install what the tests need, then pass them
	$(CARGO) test --locked --workspace --no-run
	scripts/run-parallel \
		'$(CARGO) test --locked --workspace --no-fail-fast' \
		'scripts/check-python && scripts/check-packages && scripts/check-wasm' \
		'scripts/check-command test && scripts/check-explore && scripts/check-browser && scripts/check-book'

sanitizers: setup ## the C library's test programs under valgrind, AddressSanitizer, UndefinedBehaviorSanitizer and Miri
	scripts/check-sanitizers

book: ## the book of docs/, into book/; checks its links
	scripts/check-book

cluster: ## a job array on a Slurm of one node; needs root, Debian's slurm-wlm and munge, and the programs that the tests build
	scripts/check-slurm

compare-runners: ## one sweep by every available runner, with wall and processor time; needs the same as `make cluster`, and the output of scripts/check-python
	scripts/compare-runners

setup: ## installs Debian packages that the tests call: tshark, ns2, chromium, the peers of interop/
	scripts/setup

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked -p anabranch-cli -- -D warnings # with the features of `make demo`; the line above has all
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --lib --all-features # of crates/*

deny: setup ## licences, bans and sources of the dependencies
	scripts/deny

BENCH = $(CARGO) run --profile fair --locked --quiet -p anabranch-bench --bin

bench: ## speed compared with other SCTP stacks (in memory; under loss; on the loopback interface, as root), ns-2.35 and ns-3; writes bench/README.md
	scripts/setup bench
	$(CARGO) build --profile fair --locked --quiet -p anabranch-cli -p anabranch-interop --bins
	$(CARGO) build --profile fair --locked --quiet -p anabranch-capi
	$(BENCH) in_memory -- 7 --write
	$(BENCH) association_cost -- --write
	$(BENCH) association_cost -- time 7 --write
	$(BENCH) latency -- 5 --write
	$(BENCH) concurrent_associations -- 3 --write
	$(BENCH) geo -- 5 --write
	$(BENCH) wifi -- 5 --write
	$(BENCH) constellation -- 1 60
	$(BENCH) losses -- 3 --write
	$(BENCH) sweep -- 7 --write
	$(BENCH) gigabit -- 1 --write
	$(BENCH) loopback -- 3 --write
	$(BENCH) iperf -- 5 --write
	$(BENCH) sockets_api_cost -- --write
	$(BENCH) scoreboard -- --write

geo-real: ## the GEO path simulated and on real sockets, in one figure; takes ten minutes of real time
	$(CARGO) run --release --locked --quiet -p anabranch-cli -- run examples/geo-real.toml --live real --out out/geo-real
	cp out/geo-real/figures/goodput.svg docs/images/geo-real.svg

fuzz: ## ten minutes a target, from the corpus in fuzz/corpus
	scripts/fuzz

dist: ## a static binary and a Debian package in target/dist, installed and run in an empty root directory; needs root, builds for musl
	scripts/dist

semver: ## before a release: whether the public interface changed more than the version says, compared with the last release
	scripts/check-semver

clean:
	rm -rf target out book
