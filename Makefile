# Everything runs in .venv, which the first command makes: nothing else need be installed.
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
INSTALLED := .venv/installed

# Data sets beside the checkout are used if there are any; otherwise those of the user's cache.
SHARED := $(abspath $(wildcard ../shared/data))
ifneq ($(SHARED),)
export SAMEWISE_DATA ?= $(SHARED)
endif

.PHONY: demo demo-serve demo-pairs film test test-oldest coverage mutants fuzz fuzz-service torture scale check \
  check-browser lint layout types layers docstrings spelling links house format bench experiments docs wheel clean

# A search that learns, in two minutes; demo-serve leaves it running.
demo: $(INSTALLED)
	$(BIN)/python -m demo

demo-serve: $(INSTALLED)
	$(BIN)/python -m demo --serve

# Metrics learned from a stream of pairs of digits, and from labels; writes pairs.html.
demo-pairs: $(INSTALLED)
	$(BIN)/python -m demo.pairs

# One BLAS thread for each process of the tests: more would wait for one another.
test coverage: export OMP_NUM_THREADS = 1
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

test: $(INSTALLED)
	$(PYTEST)

# The tests again, slower, and the lines they do not reach. What numba compiles does not count.
coverage: $(INSTALLED)
	$(PYTEST) --cov=samewise --cov-report=
	$(BIN)/coverage report --skip-covered --show-missing

# Errors written into copies of the code: how many of them the tests notice. About 25 minutes on two
# cores; MUTANTS of each folder, drawn with SEED.
MUTANTS ?= 12
SEED ?= 0

mutants: $(INSTALLED)
	$(BIN)/python -m tools.mutants --per-folder $(MUTANTS) --seed $(SEED)

check: lint layout types layers docstrings spelling links

lint: $(INSTALLED)
	$(BIN)/ruff check .

layout: $(INSTALLED)
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

layers: $(INSTALLED)
	$(BIN)/lint-imports

# The texts of the public names: complete, and in usual words.
docstrings: $(INSTALLED)
	$(BIN)/python -m tools.docstrings

# With the oldest versions that pyproject.toml allows, in an environment of their own. Old libraries
# warn of what newer ones beside them have deprecated; that is not our affair.
OLDEST := tests/contracts tests/decide tests/engine tests/forms tests/kernels tests/plots tests/scores \
  tests/search tests/supervision tests/theory tests/cli/test_tables.py

test-oldest: $(INSTALLED)
	rm -rf build/oldest && mkdir -p build/oldest
	$(BIN)/python -m tools.oldest > build/oldest/constraints.txt
	$(PYTHON) -m venv build/oldest/venv
	build/oldest/venv/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint build/oldest/constraints.txt --editable '.[cli,plots,serve,text]' pytest
	build/oldest/venv/$(SCRIPTS)/python -m pytest -W ignore::DeprecationWarning $(OLDEST)

# Words that are misspelled, in pages, docstrings and code; tools/vocabulary.txt has those that are ours.
SPELLED := docs README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md src tools demo examples deploy \
  experiments benchmarks

spelling: $(INSTALLED)
	$(BIN)/codespell $(SPELLED)

# Links of pages to files and headings that are not there; the web is not asked.
links: $(INSTALLED)
	$(BIN)/python -m tools.links

# How large the house is, with the goals; make house LIST=--list shows what was counted.
house: $(INSTALLED)
	$(BIN)/python -m tools.house $(LIST)

check-browser: demo-pairs build/axe.min.js
	SAMEWISE_LARGE=1 SAMEWISE_REPORT=pairs.html SAMEWISE_SCREENSHOTS=build/browser $(BIN)/python -m pytest tests/browser -rs

# What the page is checked by for people who see or move badly; the tests go on without it.
build/axe.min.js:
	mkdir -p build/axe && cd build/axe && npm pack --silent axe-core@4.14.0 && tar -xzf axe-core-*.tgz
	cp build/axe/package/axe.min.js $@

# The pictures of the page in the docs, by Chromium.
film: $(INSTALLED)
	$(BIN)/python -m tests.browser.film

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# All sections, or those that are named: make bench comparison search.
SECTIONS := $(if $(filter bench,$(firstword $(MAKECMDGOALS))),$(wordlist 2,99,$(MAKECMDGOALS)))

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks $(SECTIONS)

# Processes are killed, disks filled, files read while they are written; it counts what is lost.
torture: $(INSTALLED)
	$(BIN)/python -m torture

# Learners on a cluster of two processes: workers killed at more moments, and more of the letters.
ifeq ($(filter scale,$(SECTIONS)),)
scale: $(INSTALLED)
	SAMEWISE_SCALE=1 $(BIN)/python -m pytest tests/scale
endif

# Hostile input, for MINUTES and from SEED; what fails ends it with an error and a small input.
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.hostile.fuzz --minutes $(or $(MINUTES),15) --seed $(or $(SEED),0)

# The service under requests that are generated from its OpenAPI text.
fuzz-service: $(INSTALLED)
	$(BIN)/python -m tests.serve.fuzzing --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0)

experiments: $(INSTALLED)
	$(BIN)/python -m experiments pola_mnist --jobs 2
	$(BIN)/python -m experiments pa_study --jobs 2
	$(BIN)/python -m experiments newsgroups --jobs 2
	$(BIN)/python -m experiments newsgroups_scales --jobs 2
	$(BIN)/python -m experiments banking77 --jobs 2
	$(BIN)/python -m experiments lmnn_table1 --jobs 2
	$(BIN)/python -m experiments lmnn_million --jobs 2
	$(BIN)/python -m experiments thesis --jobs 2
	$(BIN)/python -m experiments reuters_filtering --jobs 2
	$(BIN)/python -m experiments infile_shape --jobs 2
	$(BIN)/python -m experiments defaults --jobs 2
	$(BIN)/python -m experiments live --jobs 2

docs: $(INSTALLED)
	$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

# Built, installed into an empty environment, and tried there, away from the sources.
wheel: $(INSTALLED)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel . > build/wheel/log || { cat build/wheel/log; exit 1; }
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check "$$(ls build/wheel/*.whl)[cli]"
	cd build/wheel && venv/$(SCRIPTS)/samewise --help > /dev/null && venv/$(SCRIPTS)/python -c "$$TRY" && \
	  venv/$(SCRIPTS)/samewise fit iris.csv --label class --learner lmnn --out iris.sw

define TRY
from sklearn.datasets import load_iris
import pandas
X, y = load_iris(return_X_y=True, as_frame=True)
X.assign(**{"class": y}).to_csv("iris.csv", index=False)
endef
export TRY

clean:
	rm -rf .venv build report.html pairs.html .coverage .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	  { echo "samewise needs Python 3.11 or later; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	@touch $@

# Sections of the benchmarks are no targets.
ifneq ($(SECTIONS),)
.PHONY: $(SECTIONS)
$(SECTIONS): ; @:
endif
