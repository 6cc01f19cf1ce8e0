# Two commands do all the set-up: make demo, make test.
VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALL = python3 -m venv $(VENV) && $(PYTHON) -m pip install --quiet --constraint constraints.txt
# Set them on make's command line: many systems have a WORKDIR in the environment.
WORKDIR = runs/demo
LOCALE = de
VASWANI := $(VENV)/bin/vaswani
# Where it is set, each program of the tests would compile the libraries again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo oracles browser tpu-compiler test docs lint format clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(INSTALL) --editable '.[demo,plot]'
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt
	$(INSTALL) --editable '.[dev]'
	touch $(VENV)/installed $@

# Implementations that we did not write, for tests/oracles; make test skips what is
# not there. Of their files most are never read: Python compiles those that are. Of
# allennlp and supar single files are used, which need nothing else.
$(VENV)/installed-oracles: pyproject.toml constraints.txt
	$(INSTALL) --no-compile --editable '.[dev,oracles]'
	$(PYTHON) -m pip install --quiet --no-compile --no-deps --upgrade \
		--constraint constraints.txt --target $(VENV)/oracles allennlp supar
	touch $(VENV)/installed $(VENV)/installed-dev $@

oracles: $(VENV)/installed-oracles

# The compiler of TPUs, which tests ask what it makes of our programs; no TPU.
$(VENV)/installed-tpu-compiler: pyproject.toml constraints.txt
	$(INSTALL) --editable '.[dev,tpu]'
	touch $(VENV)/installed $(VENV)/installed-dev $@

tpu-compiler: $(VENV)/installed-tpu-compiler

# Tests open pages in Debian's chromium; make test skips them without playwright.
$(VENV)/installed-browser: pyproject.toml constraints.txt
	$(INSTALL) --editable '.[dev,browser]'
	touch $(VENV)/installed $(VENV)/installed-dev $@

browser: $(VENV)/installed-browser

demo: $(VENV)/installed
	$(VASWANI) train demo --config.data.target_locale='$(LOCALE)' --workdir='$(WORKDIR)'
	$(VASWANI) evaluate '$(WORKDIR)' --samples=10
	@echo
	@echo "Translate a line of your own:"
	@echo "  echo '3 hours ago' | $(VASWANI) translate '$(WORKDIR)'"

# Neighbours stay in one worker: they share fixtures and compiled programs. A third
# worker computes where two cores would wait for a program that a test has started.
test: $(VENV)/installed-dev
	$(PYTHON) -m pytest -q -n 3 --dist worksteal -m 'not slow and not gpu'

$(VENV)/installed-docs: pyproject.toml constraints.txt
	$(INSTALL) --editable '.[docs]'
	touch $(VENV)/installed $@

# Strict: a warning, a link to nowhere and a page that no other names are errors.
docs: $(VENV)/installed-docs
	$(PYTHON) -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint: $(VENV)/installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/installed-dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) build dist docs/_build *.egg-info
