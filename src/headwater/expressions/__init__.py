"""Expressions that are evaluated without Spark: as data, how Arrow evaluates them, and what is known of them."""
