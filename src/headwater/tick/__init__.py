"""The tick: one step of a pipeline's clock."""
