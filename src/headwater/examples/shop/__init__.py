"""The shop: the one running example, used by the README, the docs and the demo."""

from headwater.examples.shop.declare import Shop, declare
from headwater.examples.shop.traffic import Batch, traffic
from headwater.examples.shop.views import VIEWS, ShopView

__all__ = ["VIEWS", "Batch", "Shop", "ShopView", "declare", "traffic"]
