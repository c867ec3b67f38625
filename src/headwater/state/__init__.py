"""State: runs, arrangements, their merging, and which versions are kept."""

from headwater.state.arrangement import Arrangement
from headwater.state.manifest import Manifest
from headwater.state.merge import MergeResult, merge
from headwater.state.pins import Pin, Pins
from headwater.state.retention import retained
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.state.run_file import RunFile

__all__ = [
    "HIGHEST",
    "LOWEST",
    "Arrangement",
    "Manifest",
    "MergeResult",
    "Pin",
    "Pins",
    "Run",
    "RunFile",
    "merge",
    "retained",
]
