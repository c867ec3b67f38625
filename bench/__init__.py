"""Benchmarks of Headwater against its peers; `python -m bench.log` measures the log."""
