"""Operators: what each keeps, how it makes its change of those of its inputs, how it is told, what a tick costs.

Each is in a file of its own, as data with pure functions. A new one is a frozen dataclass over `Stateful`, made
known by `register`; what else it takes is its rule in the planner.
"""

from headwater.operators.accumulate import Aggregate
from headwater.operators.aggregate_call import AggregateCall
from headwater.operators.join import Join
from headwater.operators.join_with_rows import JoinWithRows
from headwater.operators.match_counts import MatchCounts
from headwater.operators.outer_join import OuterJoin
from headwater.operators.range_join import RangeJoin
from headwater.operators.ranking import Order, Ranking
from headwater.operators.recompute import Recompute
from headwater.operators.semi_join import SemiJoin
from headwater.operators.stateful import Stateful
from headwater.operators.stateless import Constant, Fragment, Union
from headwater.operators.top_k import TopK
from headwater.operators.top_k_tree import TopKTree
from headwater.operators.tree import Tree
from headwater.plan.registry import register

__all__ = [
    "Aggregate",
    "AggregateCall",
    "Constant",
    "Fragment",
    "Join",
    "JoinWithRows",
    "MatchCounts",
    "Order",
    "OuterJoin",
    "RangeJoin",
    "Ranking",
    "Recompute",
    "SemiJoin",
    "Stateful",
    "TopK",
    "TopKTree",
    "Tree",
    "Union",
    "register",
]
