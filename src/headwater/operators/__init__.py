"""Operators: pure functions from changes and old state to changes and new state."""
