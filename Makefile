# Everything from nothing but Python 3.11: `make demo` audits bundled data, `make test` runs the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venv-peers
NODE_MODULES := tests/e2e/node_modules/.package-lock.json

.PHONY: demo samples nightly test coverage mutation check format docs notebooks lower-bounds python bench bench-large scoreboard release calibration lock lock-audit clean

demo: $(VENV)/.runtime
	$(BIN)/equipoise demo --output report.html

test: $(VENV)/.development $(if $(wildcard tests/e2e/package.json),$(NODE_MODULES))
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadgroup

# About 45 CPU minutes. What fills a disk is left out: it would fill that of the measurement.
coverage: $(VENV)/.development
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -q -m "not browser and not calibration" -k "not full_disk and not takes_no_more"
	$(BIN)/coverage combine
	$(BIN)/coverage report --skip-covered --show-missing

# About 25 CPU minutes, by hand: what of `equipoise.stats` the tests would not notice.
mutation: $(VENV)/.development
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 nice $(BIN)/python tests/mutation/sample.py 80

check: $(VENV)/.development
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.development
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Strict: a broken link, or a page outside the menu, is an error.
docs: $(VENV)/.development
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The finished reports of docs/samples.md, and that page itself.
samples: $(VENV)/.runtime
	COLUMNS=80 $(BIN)/python docs/samples.py samples

# Runs the notebooks again and keeps what they print; their tables are looked for in $EQUIPOISE_DATA.
notebooks: $(VENV)/.development
	$(BIN)/python -W error docs/notebooks.py

# About 20 CPU minutes; rewrites docs/calibration.md and docs/calibration-tests.md.
calibration: $(VENV)/.development
	rm -f rates.jsonl
	OMP_NUM_THREADS=1 EQUIPOISE_RATES=rates.jsonl $(BIN)/python -m pytest -q -m calibration --slow tests/calibration
	PYTHONPATH=tests $(BIN)/python tests/calibration/grid.py rates.jsonl
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/calibration/grid.py

# The oldest libraries that pyproject.toml allows, or another interpreter: `make python PYTHON=python3.13`.
lower-bounds: PICK := --resolution lowest-direct
lower-bounds python:
	$(PYTHON) -m venv --clear .venv-$@
	.venv-$@/bin/python -m pip install --quiet uv
	.venv-$@/bin/uv pip install --quiet --python .venv-$@/bin/python $(PICK) --editable . "pytest>=8.4" "hypothesis>=6.120" "pandas>=2.2" "polars>=1.20"
	.venv-$@/bin/equipoise demo --output report.html
	.venv-$@/bin/python -m pytest -q -W ignore::DeprecationWarning tests/unit/plot tests/unit/plans/test_draft.py tests/unit/audits/disparity/test_gaps.py tests/unit/data/test_clusters.py tests/unit/audits/improvement/test_necessity.py

# Hours: every suite that is too long for CI, one after the other, each with its output in `nightly`.
# One that fails does not keep the others from running, and is named at the end.
NIGHT := coverage calibration grids slow fuzz typed kills mutation r notebooks lower-bounds pythons
PYTHONS ?= python3.12 python3.13
ALONE := OMP_NUM_THREADS=1 PYTHONPATH=src:tests $(BIN)/python
nightly: $(VENV)/.development
	rm -rf nightly && mkdir nightly
	for suite in $(NIGHT); do \
	  $(MAKE) night-$$suite >nightly/$$suite.log 2>&1 || echo $$suite >>nightly/failed; done
	tail -n 3 nightly/*.log
	! cat nightly/failed 2>/dev/null

night-%:
	$(MAKE) $*

night-grids:
	$(ALONE) tests/calibration/small_samples_grid.py
	$(ALONE) tests/calibration/edges.py
	$(ALONE) tests/calibration/monitor_delays.py

night-slow:
	$(ALONE) -m pytest -q --slow -m "slow and not calibration"

night-fuzz:
	$(BIN)/python -m pip install --quiet atheris
	for target in plan csv audit; do $(ALONE) tests/fuzz/fuzz.py $$target 1200 || exit 1; done
	rm -rf fuzz-corpus-*

night-typed:
	$(ALONE) tests/fuzz/typed.py 0 10000

night-kills:
	for what in files command; do $(ALONE) tests/support/audit_kills.py $$what 500 || exit 1; done
	for what in state command; do $(ALONE) tests/support/monitor_kills.py $$what 500 || exit 1; done

night-mutation:
	$(ALONE) tests/mutation/sample.py 60

night-r:
	$(ALONE) -m pytest -q -rs tests/reference/test_r.py

night-pythons:
	for one in $(PYTHONS); do $(MAKE) python PYTHON=$$one || exit 1; done

lock: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --extra spark --no-annotate --no-emit-index-url \
	  --custom-compile-command "make lock" pyproject.toml --output-file requirements.lock

lock-audit: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --requirement requirements.lock --no-deps --disable-pip

# Minutes; rewrites docs/benchmarks.md. `bench-large` needs 2 GB of disk in $EQUIPOISE_BENCH or /tmp.
bench: $(VENV)/.benchmarks $(PEERS)/.installed
	EQUIPOISE_PEERS=$(PEERS)/bin/python nice $(BIN)/python benchmarks/run.py

bench-large: $(VENV)/.benchmarks
	nice $(BIN)/python benchmarks/run.py --large

# What intervals and flags of other toolkits do on tables without differences; rewrites docs/scoreboard.md.
scoreboard: $(VENV)/.benchmarks $(PEERS)/.installed
	EQUIPOISE_PEERS=$(PEERS)/bin/python nice $(BIN)/python benchmarks/scoreboard.py

# Moves the fragments into CHANGELOG.md; then commit and tag: `make release VERSION=0.1.0`.
release: $(VENV)/.development
	$(BIN)/python changelog.d/assemble.py $(VERSION)

$(VENV)/.benchmarks: $(VENV)/.development
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

# Peers whose pins exclude ours have an environment of their own.
$(PEERS)/.installed:
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet --group peers
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.development: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@ $(VENV)/.runtime

# The accessibility checker of the browser tests; they skip, and say so, where npm is absent.
$(NODE_MODULES): tests/e2e/package.json
	if command -v npm >/dev/null; then cd tests/e2e && npm install --no-audit --no-fund --silent; fi

clean:
	rm -rf $(VENV) site rates.jsonl tests/e2e/node_modules report.html samples nightly
