# Everything that can be done with this project. `make book` and `make test` are all that a newcomer needs.
#
# Each target makes what it needs: uv (fetched if it is missing), Python, the locked environment. Nothing has to be
# activated. UV_PYTHON=3.12 (or another version) chooses the Python of the main environment.

.POSIX:
.DEFAULT_GOAL := help
TARGETS := help env book pdf wheel gallery notebooks live live-bundle lab serve test check test-library test-book test-site \
           test-oldest test-rounding test-tpu test-colab test-mutants test-all gate bench clean
.PHONY: $(TARGETS)
# One line for a wrong name, before anything runs.
UNKNOWN := $(filter-out $(TARGETS) %/.made,$(MAKECMDGOALS))
$(if $(UNKNOWN),$(error there is no target $(firstword $(UNKNOWN)); there are $(TARGETS)))

UV := $(shell command -v uv 2>/dev/null || echo .uv/uv)
PYTHON := .venv/bin/python
# (Nbval takes seconds to import in each process, so it is loaded where it is used.)
PYTEST := -m pytest -q -n 2 -p no:nbval --dist loadfile
# Tests take what a change reaches, as many as there is room for; `make test TAKE=all` takes everything (tools/reach.py).
TAKE = reached
$(if $(filter-out reached all,$(TAKE)),$(error TAKE=$(TAKE): there is no such choice; there are reached, all))
# For so many minutes, on two cores; a slow machine takes three times as long, and CI ends after 90.
MINUTES_test-library := 6
MINUTES_test-book := 4
MINUTES_test-oldest := 3
MINUTES_test-rounding := 2
TAKEN = -p tools.failures -p tools.reach --take $(TAKE) --minutes $(or $(MINUTES_$@),4) --target $@
# What is quick runs in any case.
QUICK := $(addprefix tests/,data/ tools/ test_requirements.py)
# nbval compares each stored output; the sanitizer hides what may differ (paths of temporary files, process ids).
NBVAL := -p nbval.plugin --nbval --nbval-current-env --nbval-cell-timeout 900 --nbval-sanitize-with tools/notebooks/nbval_sanitize.cfg
SITE := _build/html

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

# --- environments -------------------------------------------------------------------------------------------------

.uv/uv:
	python3 tools/get_uv.py .uv

.venv/.made: pyproject.toml uv.lock .python-version | $(UV)
	$(UV) sync --locked --quiet
	@touch $@

.venv-oldest/.made: pyproject.toml uv.lock | $(UV)
	UV_PROJECT_ENVIRONMENT=.venv-oldest $(UV) sync --locked --quiet --python 3.12 --no-group live --group oldest
	@touch $@

.venv-tpu/.made: pyproject.toml uv.lock | $(UV)
	UV_PROJECT_ENVIRONMENT=.venv-tpu $(UV) sync --locked --quiet --python 3.13 --no-group browser --no-group live --group tpu
	@touch $@

.venv-tpu-oldest/.made: pyproject.toml uv.lock | $(UV)
	UV_PROJECT_ENVIRONMENT=.venv-tpu-oldest $(UV) sync --locked --quiet --python 3.12 --no-group browser --no-group live --group oldest --group oldest-tpu
	@touch $@

# PyTorch, for `make bench`, the twins and `examples/decoder.py`. The CPU's wheels are small; where they cannot be had, the usual
# ones do as well. For a GPU: `rm -f .venv-torch/.made; make .venv-torch/.made TORCH_BACKEND=auto`.
TORCH_BACKEND ?= cpu
.venv-torch/.made: benchmarks/torch/requirements.txt | $(UV)
	$(UV) venv --quiet --clear --python 3.11 .venv-torch
	$(UV) pip install --quiet --python .venv-torch --torch-backend $(TORCH_BACKEND) --requirement benchmarks/torch/requirements.txt \
	  || $(UV) pip install --quiet --python .venv-torch --requirement benchmarks/torch/requirements.txt
	@touch $@

# Grain, TensorFlow and PyTorch, for the recipes of *Many hosts*, which are skipped without.
.venv-loaders/.made: tests/loaders/requirements.txt | $(UV)
	$(UV) venv --quiet --clear --python 3.11 .venv-loaders
	$(UV) pip install --quiet --python .venv-loaders --torch-backend cpu --requirement $< \
	  || $(UV) pip install --quiet --python .venv-loaders --requirement $<
	@touch $@

env: .venv/.made ## make the environment: .venv/bin/python
	@echo "The environment is ready: $(PYTHON)"

# --- the book -----------------------------------------------------------------------------------------------------

notebooks: .venv/.made ## execute the chapters that changed
	$(PYTHON) -m tools.notebooks build

# Sphinx looks at pages only; when style or configuration changed, all of them are built anew.
ALL = $$(test -z "$$(find _config.yml _toc.yml book/_static book/_templates book/_src/welcome.md tools/site -newer _build/.made 2>&1)" || echo --all)

book: notebooks ## build the rendered book; the last line says which file to open
	.venv/bin/jupyter-book build . -W --keep-going -n --quiet $(ALL)
	@test -s $(SITE)/index.html && touch _build/.made
	@echo "The book is built. Open $(CURDIR)/$(SITE)/index.html"

live: book ## open the book with a kernel behind its pages: read, run and solve on the same page
	$(PYTHON) -m mlax_tutorial live

live-bundle: ## build the scripts of the live pages and of the formulas anew from tools/live (needs npm)
	npm ci --prefix tools/live --no-audit --no-fund --ignore-scripts
	node tools/live/build.mjs

pdf: book ## print the book: a PDF, offered for download on its pages; needs Chromium
	$(PYTHON) -m tools.visits pdf

wheel: book ## build the package as a wheel that holds the rendered book
	$(PYTHON) -m tools.wheel

lab: .venv/.made ## open the chapters in JupyterLab
	$(UV) sync --locked --quiet --inexact --group lab
	$(PYTHON) -m jupyter lab --notebook-dir book

serve: book ## serve the rendered book on this machine
	$(PYTHON) -m http.server --bind 127.0.0.1 --directory $(SITE) 8000

# --- tests --------------------------------------------------------------------------------------------------------

test: check test-library test-book test-site ## run every test that needs no other environment

check: .venv/.made ## what needs no execution: style, which part imports which, and the guards on the notebooks
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports --no-logo --no-cache
	$(PYTHON) -m tools.notebooks check

test-library: .venv/.made ## the package, its docstrings, the exercises, the tools
	$(PYTHON) $(PYTEST) -p tools.failures --import-mode=importlib --doctest-modules mlax_tutorial tools
	$(PYTHON) $(PYTEST) $(TAKEN) $(addprefix --always ,$(QUICK)) tests --ignore tests/site --ignore tests/tpu --ignore tests/colab

test-book: .venv/.made ## compare every stored output (nbval)
	$(PYTHON) $(PYTEST) $(TAKEN) $(NBVAL) book

gallery: .venv/.made ## picture every component in every state into _build/gallery, to be looked at
	$(PYTHON) -m tests.site.gallery _build/gallery

test-site: book ## the rendered book in a browser
	$(PYTHON) $(PYTEST:loadfile=loadscope) $(TAKEN) tests/site

# They compile as fast as XLA can, in a third of the time, and of an exercise's answers a few are graded. Left out is what does not
# depend on JAX or runs on the newest alone (benchmarks); `make test-colab` runs the chapters.
FAST := JAX_DISABLE_MOST_OPTIMIZATIONS=1 XLA_FLAGS="--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
OLDEST := tests/benchmarks tests/colab tests/data tests/live tests/notebooks tests/site tests/tools tests/tpu tests/test_requirements.py
test-oldest: .venv-oldest/.made ## library and exercises on the oldest JAX that is supported
	$(FAST) .venv-oldest/bin/python $(PYTEST) $(TAKEN) --answers few tests $(addprefix --ignore ,$(OLDEST))

test-rounding: .venv/.made ## exercises, and chapters that do not train, as other devices round: a TPU's products, a CPU without AVX2
	$(PYTHON) -m tools.rehearse --take $(TAKE) --minutes $(MINUTES_$@)

# A chapter's programs are found by running it, so what else has to run a chapter does so in the same kernel: on the newest JAX it
# rehearses another device's rounding, and on the oldest `test-colab` compiles them.
test-tpu: .venv-tpu/.made .venv-tpu-oldest/.made ## compile the library for a TPU, without one, and chapters that train, which run as other devices round
	.venv-tpu/bin/python $(PYTEST) $(TAKEN) tests/tpu
	.venv-tpu-oldest/bin/python $(PYTEST) $(TAKEN) tests/tpu --ignore tests/tpu/test_chapters.py

test-colab: .venv/.made ## open each chapter alone, as Colab does, with the oldest JAX, run it twice, compile it for a TPU if it trains
	$(PYTHON) $(PYTEST:loadfile=load) $(TAKEN) tests/colab

test-mutants: .venv/.made ## change each exercise's solution by small steps: its check has to notice
	$(PYTHON) -m tools.mutants --check

# One target after the other, so that all of them are seen even if one fails.
ALL_TESTS := test test-oldest test-rounding test-tpu test-colab test-mutants
test-all: ## every test in every environment
	@failed=; for target in $(ALL_TESTS); do $(MAKE) --no-print-directory $$target TAKE=all || failed="$$failed $$target"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

gate: ## what CI asks of the last commit, asked here: .ci/run in a fresh clone of it
	@place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && git clone --quiet . "$$place/project" \
	  && cd "$$place/project" && bash .ci/run </dev/null

# --- measurements -------------------------------------------------------------------------------------------------

bench: .venv/.made ## time the library beside its peers, PyTorch among them if it can be installed
	@$(MAKE) --no-print-directory .venv-torch/.made \
	  || { rm -rf .venv-torch; echo "PyTorch cannot be installed here; the others take part."; }
	$(PYTHON) -m benchmarks

clean: ## remove what was built; environments stay
	rm -rf _build .cache .pytest_cache .ruff_cache
