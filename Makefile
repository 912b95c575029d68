# One-word habits. Needs make and Python 3.11 or newer; `make help` lists the words.
# Variables: PYTHON (which interpreter makes .venv), RFC_SPECS and TEST_CORPUS (folders that the
# tests read), WORKERS (how many tests run at once: those with real programs mostly wait, so three
# more than there are processors), ARGS (more arguments for the command behind the word:
# make test ARGS="-k sdp"), ORACLE_DRAWS (how many of each kind `make oracle` draws).

PYTHON ?= python3
ARGS ?=
ORACLE_DRAWS ?= 10000
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 3)
EVIDENCE := .annotations.json
# All but what judges sources and pages, and the laboratory, which reads the sources in any case.
COMPILED_TESTS := tests/p2psip tests/rtmplite tests/siprtmp tests/interop \
  tests/rtclab/test_main.py tests/test_alike.py tests/test_both_forms.py
MUTANTS := rfc_annotations/mutants.txt
SPECS := $(or $(RFC_SPECS),../shared/specs)
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport PYTHONDONTWRITEBYTECODE  # with it, every program that a test starts compiles all it imports

# what the tests talk to; gcc builds the measuring relay of perf/, and with golang-go and rustc
# adapters of the oracle; systemd has a program that checks unit files
PEERS = ffmpeg rtmpdump nginx libnginx-mod-rtmp sip-tester baresip-core baresip-ffmpeg linphone-cli kamailio kamailio-tls-modules kamailio-websocket-modules coturn tshark \
	gstreamer1.0-tools gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly \
	libspeex1 libnice10 fail2ban redis-server gcc libc6-dev systemd chromium firefox-esr openssl vlc-bin vlc-plugin-base obs-studio xvfb $(if $(shell command -v npm),,npm) \
	$(if $(shell command -v go),,golang-go) $(if $(shell command -v rustc),,rustc)  # of these three any version will do

.PHONY: help demo test fast pure testfast sanitize bare oracle reach vectors lint types check mutants docs bench soak peers specs clean

# What judges the sources reads them, also after `make fast`.
test oracle reach vectors check mutants docs: export SIPRTMP_PURE = 1

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*  ## /\1\t/p' Makefile | expand -t 10

demo: .venv/.core  ## place a call on loopback and judge it by what both ends hear
	$(BIN)/python -m siprtmp demo $(ARGS)

test: .venv/.test  ## run the whole test suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p rfc_annotations.pytest_plugin \
	  --annotations $(EVIDENCE) $(ARGS)

fast: .venv/.test  ## compile the busiest modules in place; edit a source, and run this again
	rm -f $$(find src -name '*.so')
	$(BIN)/python setup.py -q build_ext --inplace --parallel 2
	$(BIN)/python -m siprtmp --version | grep compiled

pure:  ## remove what make fast has built
	rm -rf $$(find src -name '*.so') build/mypyc

testfast: fast  ## the tests of all that runs, unit and interop, with the compiled form
	$(BIN)/python -m pytest -q -m "not sources and not bare" -n $(WORKERS) --dist worksteal $(or $(ARGS),$(COMPILED_TESTS))

sanitize: .venv/.test  ## the tests of the compiled packet pump, with the sanitizers of addresses and undefined behaviour
	SANITIZE=1 LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYCRYPTODOME_DISABLE_DEEPBIND=1 $(BIN)/python -m pytest -q tests/siprtmp/pump tests/rtmplite/net/test_pipe.py tests/rtmplite/net/test_intake.py tests/rtmplite/net/test_datagram_runs.py tests/rtmplite/rtmfp/crypto/test_blocks.py tests/rtclab/load/test_load_counts.py $(ARGS)

bare: .venv/.test  ## run every word of README and CONTRIBUTING as on a fresh machine
	$(BIN)/python -m pytest -n $(WORKERS) -m bare tests/test_bare_machine.py $(ARGS)

oracle: .venv/.test  ## draw 10,000 messages of each kind, and ask the RFCs' grammars and other programs about them
	ORACLE_DRAWS=$(ORACLE_DRAWS) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal \
	  -k "in_the_grammar or foreign" tests/p2psip/strategies tests/rtmplite/strategies \
	  tests/rtclab/oracle tests/interop/test_oracle_adapters.py $(ARGS)

reach: .venv/.test  ## the branches of parsers that no input of the strategies takes: there should be none
	PYTHONPATH=src:tests $(BIN)/python -m support.reach $(ARGS)

vectors: .venv/.test  ## the oracle's vectors of every codec, as build/vectors/CODEC.jsonl
	mkdir -p build/vectors
	for codec in $$($(BIN)/python -m rtclab oracle list | cut -d' ' -f1); do \
	  $(BIN)/python -m rtclab oracle vectors $$codec --count 1000 $(ARGS) \
	    > build/vectors/$$codec.jsonl || exit 1; done

lint: .venv/.test  ## style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.test  ## static types
	$(BIN)/mypy

check: .venv/.test  ## citations against catalogue, specs (when present) and the last make test
	$(BIN)/python -m rfc_annotations check $(addprefix --evidence ,$(wildcard $(EVIDENCE))) $(ARGS)

mutants: .venv/.test  ## change lines that make claims, and see whether their tests mind
	$(BIN)/python -m rfc_annotations mutants --evidence $(EVIDENCE) \
	  --results $(MUTANTS) $(ARGS)

docs: .venv/.docs  ## the documentation, as docs/_build/index.html
	$(BIN)/sphinx-build -W -j auto -b html -d build/doctrees docs docs/_build $(ARGS)
	@echo "open docs/_build/index.html"

bench: .venv/.core  ## measure; perf/README.md tells how to read it
	$(BIN)/python perf/bench.py $(ARGS)

soak: .venv/.test  ## calls of every kind for an hour, and whether memory or threads grow
	$(BIN)/python perf/soak.py $(ARGS)

peers:  ## install the real programs that interop tests talk to (Debian)
	@command -v apt-get >/dev/null || { echo "make peers knows Debian only; install: $(PEERS)" >&2; exit 1; }
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-upgrade --no-install-recommends $(PEERS)
	npm ci --ignore-scripts --no-audit --no-fund --prefix tests/interop/browser

specs: .venv/.core  ## download the cited RFCs into RFC_SPECS
	$(BIN)/python .ci/specs.py $(SPECS)

clean: pure  ## remove .venv and everything that was generated
	rm -rf .venv build rfc_annotations/build docs/_build docs/6-conformance/specs $(EVIDENCE) .coverage* .pytest_cache .mypy_cache .ruff_cache

# A stamp per set of packages, so that a second run starts at once. `pip install -e` leaves the
# sources where they are.
.venv/.core: setup.cfg pyproject.toml | .venv/.python
	$(BIN)/python -m pip install -q -e .
	@touch $@

.venv/.test .venv/.docs: .venv/.%: setup.cfg pyproject.toml | .venv/.python
	$(BIN)/python -m pip install -q -e '.[$*]'
	@touch $@

.venv/.python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) is not installed: siprtmp needs Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "siprtmp needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
	    "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make a virtual environment: it lacks venv or ensurepip." \
	    "On Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@touch $@
