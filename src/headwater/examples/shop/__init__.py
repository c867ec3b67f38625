"""The shop: the one running example, used by the README, the docs and the demo."""

from headwater.examples.shop.declare import Shop, declare
from headwater.examples.shop.traffic import Batch, traffic

__all__ = ["Batch", "Shop", "declare", "traffic"]
