"""Figures of others on the same kind of machine, two cores and 10 million events, measured in November 2026.

They are printed beside ours as what they are: recorded, not run. Millions of events a second.
"""

FELDERA = {
    **{"q0": 0.98, "q1": 0.76, "q2": 0.98, "q3": 1.02, "q4": 0.70, "q5": 0.88, "q6": 0.64, "q7": 0.77, "q8": 0.94},
    **{"q9": 0.26, "q12": 0.92, "q13": 0.57, "q14": 0.92, "q15": 0.43, "q16": 0.19, "q17": 0.32, "q18": 0.44},
    **{"q19": 0.39, "q20": 0.51, "q21": 0.98, "q22": 0.87},
}
"""The Rust engine 0.337 with circuits written by hand, in memory, its generator on the same cores."""

FLINK_ROCKSDB = {
    **{"q0": 1.60, "q3": 1.69, "q4": 0.16, "q9": 0.08, "q15": 0.41, "q16": 0.10, "q17": 0.77, "q18": 0.27},
    **{"q19": 0.25, "q20": 0.11},
}
"""Flink SQL 2.3 with RocksDB and checkpoints every 10 seconds, from Parquet, parallelism 2."""
