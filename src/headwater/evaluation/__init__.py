"""Evaluating rows: how it fails, which row is to blame, and which ways are tried one after the other."""

ROW = "_row"
"""The column that says of which row something was computed."""
PLACE = "_place"
"""The column with the places of rows that are evaluated together, in their order."""
LEFT_MARK, RIGHT_MARK = "_left", "_right"
"""What columns are called that tell rows of a side from pairs of a join; not shown where a row is."""
