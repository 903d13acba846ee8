# make demo    the whole chain on real input, on this machine
# make rft     two rounds of rejection-sampling fine-tuning, and what they gain; some 40 minutes
# make test    every test; make check  ruff, mypy, import-linter

PY := .venv/bin/python

.PHONY: demo rft test test-fast check setup clean

setup:
	@bash pipelines/setup.sh

demo: setup
	@bash pipelines/demo.sh

rft: setup
	@bash pipelines/rft.sh
	@TASK=maze ROUNDS=$(or $(ROUNDS),1) bash pipelines/rft.sh
	@cat runs/rft/*/rounds.txt

test: setup
	$(PY) pipelines/smollm2.py
	$(PY) -m pytest

test-fast: setup
	$(PY) -m pytest -m "not slow"

check: setup
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

clean:
	rm -rf runs/demo runs/rft
