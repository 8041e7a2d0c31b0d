# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test docs clean

# It is to be short: without what wins less here, or nothing, and would be proven beside the rest on a busy
# machine, and in the arithmetic that the script has.
demo: $(READY)
	cd examples && ../$(BIN)/hotloop optimize --steps 20 --effect same_math --skip loader_workers,channels_last,compile image_cnn.py

# ruff and mypy are among the tests, and take their time beside the others. Files come in their
# order, in which those with the longest tests are early; threads that wait leave others the core.
test: $(TOOLS)
	OMP_WAIT_POLICY=passive $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m 'not alone'
	$(BIN)/pytest -m alone

# Its pages and the schema are made from the source; the site is then in build/site.
docs: $(READY)
	$(BIN)/python docs/generate.py
	$(INSTALL) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build

# torch comes from the constraints file; the package itself leaves the choice of a build to its user.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hotloop needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable . torch numpy
	touch $@

# What only the tests need: nobody who wants to see the demo waits for it.
$(TOOLS): $(READY)
	$(INSTALL) --editable '.[dev]'
	touch $@
