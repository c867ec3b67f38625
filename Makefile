# Everything runs inside .venv; the stamps make a second run do no set-up work.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

.PHONY: setup demo test check docs docs-picture mutants soak bench bench-log bench-tick bench-ranges bench-change bench-nexmark \
	bench-latency bench-load bench-plots bench-spent bench-views clean

setup: .venv/.installed

.venv/bin/uv: constraints.txt
	@echo "headwater: creating .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "headwater: $(PYTHON) is older than 3.11; run make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@touch $@

.venv/.installed: pyproject.toml constraints.txt .venv/bin/uv
	@echo "headwater: installing (pyspark, pyarrow and a Java runtime; about half a minute)"
	@$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q -j 2 -x '/tests/' src .venv/lib/python3*/site-packages/numpy .venv/lib/python3*/site-packages/pyarrow
	@touch $@

.venv/.tested: .venv/.installed
	@echo "headwater: installing what the tests need"
	@$(INSTALL) --editable '.[test]'
	@touch $@

demo: .venv/.installed
	@$(BIN)/headwater demo

# Two workers: one has every test that uses the run's Spark, the other the rest.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# Everything, or one area: make test AREA=log. SEED=n repeats the random cases of another day.
test: .venv/.tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(if $(SEED),SEED=$(SEED)) $(PYTEST) $(if $(AREA),--area $(AREA))

check: .venv/.tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(PYTEST) -m "not slow and not spark and not own_spark and not service"

docs: .venv/.tested
	@$(BIN)/python -m pytest tests/docs

# The rooms of the code and what they import, from the imports of today, in docs/images.
docs-picture: .venv/.tested
	@$(BIN)/python -m tests.docs.rooms_picture

# Breaks promises on purpose, one at a time; each must turn a test red.
mutants: .venv/.tested
	@$(BIN)/python -m tests.mutants.run

# The long campaigns. SEED=n repeats one.
soak: .venv/.tested
	@$(BIN)/python -m tests.crash.kills --kills 1000 $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.crash.driver_kills --kills 200 $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.crash.state_damage --flips 10000 $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.equivalence.run --grammar wide --views 1500 --restarts 0.1 $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.equivalence.run --grammar deep --views 1000 --restarts 0.1 $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.tick.locality --keys 1000000
	@$(BIN)/python -m tests.tick.altering --rows 10000000 $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.tick.bad_views --ways 200 $(if $(SEED),--seed $(SEED))
	@HEADWATER_THOROUGH=10 $(if $(SEED),SEED=$(SEED)) $(PYTEST) --area crash,equivalence -m "not own_spark" --timeout 36000

bench: bench-log bench-tick bench-views bench-latency bench-load bench-change bench-nexmark bench-plots

# QUICK=1 runs a shorter form of those on latency, load, change and Nexmark.
QUICK_FORM := $(if $(QUICK),--quick)

# The log against Apache Kafka in one interleaved run; needs Java and Maven for the peer.
bench-log: .venv/.tested
	@$(BIN)/python -m bench.log

# Ticks small and large, over small and large tables.
bench-tick: .venv/.tested
	@$(BIN)/python -m bench.tick

# Joins by ranges, 1M points x 10,000 ranges and as a correlated aggregate, against Spark's batch.
bench-ranges: .venv/.tested
	@$(BIN)/python -m bench.ranges

# The same small change over TPC-H at scale factors 1 and 10; needs about 50 GB of disk.
bench-change: .venv/.tested
	@$(BIN)/python -m bench.change --recompute $(QUICK_FORM)

# Many views: what those cost that have nothing to do, a tick that touches all, and the first tick of a process.
bench-views: .venv/.tested
	@$(BIN)/python -m bench.views $(QUICK_FORM)

# Every query of Nexmark against Flink SQL and Spark's batch; installs Flink into bench/.cache; needs Java and Maven.
bench-nexmark: .venv/.tested
	@$(BIN)/python -m bench.nexmark $(QUICK_FORM)

# How old the newest visible row is, at 10,000 rows a second and at 10, and what an idle pipeline takes.
bench-latency: .venv/.tested
	@$(BIN)/python -m bench.latency $(QUICK_FORM)

# The first fill of views over 10 and 60 million rows against Spark's batch.
bench-load: .venv/.tested
	@$(BIN)/python -m bench.load $(QUICK_FORM)

# Throughput of each Nexmark query, and ticks over larger tables, as pictures in docs/images, from the newest results.
bench-plots: .venv/.tested
	@$(INSTALL) --editable '.[test,bench]'
	@$(BIN)/python -m bench.plots

# Where the time of small and of large ticks goes, by function; needs the right to look into other processes.
bench-spent: .venv/.tested
	@$(INSTALL) --editable '.[test,bench]'
	@$(BIN)/python -m bench.spent

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/.cache bench/results/*.json
