"""The shop's views: what its people want to know at every moment."""

from __future__ import annotations

from typing import NamedTuple

import headwater as hw


class ShopView(NamedTuple):
    """A view as it is declared."""

    name: str
    key: str
    sql: str

    def declare(self, pipeline: hw.Pipeline) -> hw.View:
        """Declare it in a pipeline that has the shop's topics."""
        return pipeline.view(self.name, self.sql, key=self.key)


REVENUE = ShopView(
    "revenue",
    "country",
    """
SELECT c.country, count(*) AS orders, sum(o.cents) AS cents
FROM orders o JOIN customers c ON o.customer_id = c.id
GROUP BY c.country
""",
)
"""What comes in from where. It follows customers who move and orders that are cancelled."""

CONVERSION = ShopView(
    "conversion",
    "sku",
    """
WITH seen AS (
    SELECT substring(url, 10) AS sku, count(*) AS clicks
    FROM clicks
    WHERE url LIKE '/product/%'
    GROUP BY substring(url, 10)
), bought AS (
    SELECT sku, count(*) AS orders, sum(quantity) AS sold, sum(cents) AS cents
    FROM orders
    GROUP BY sku
)
SELECT p.sku, p.title, s.clicks, b.orders, b.sold, b.cents, round(100 * b.orders / s.clicks, 1) AS percent
FROM products p JOIN seen s ON s.sku = p.sku JOIN bought b ON b.sku = p.sku
""",
)
"""The best products, and how many of the clicks on each end in an order."""

SPENDING = ShopView(
    "spending",
    "customer_id",
    """
SELECT c.id AS customer_id, c.name, count(*) AS orders, sum(o.cents) AS cents,
       count(*) FILTER (WHERE o.status = 'delivered') AS delivered
FROM customers c JOIN orders o ON o.customer_id = c.id
GROUP BY c.id, c.name
""",
)
"""What each customer ordered: for a page about one customer, looked up by key."""

PRIORITY_ORDERS = ShopView(
    "priority_orders",
    "id",
    """
SELECT o.id, s.name, o.sku, o.cents, o.status
FROM orders o JOIN spending s ON o.customer_id = s.customer_id
WHERE o.status IN ('placed', 'paid') AND s.cents > 300000
""",
)
"""The orders of good customers that wait to be sent: a view over a view."""

CANCELLED = ShopView(
    "cancelled",
    "sku",
    """
SELECT o.sku, count(*) AS orders, sum(o.cents) AS cents
FROM orders__log o JOIN orders__log d ON d.id = o.id
WHERE o.status = 'placed' AND d._op = 'delete'
GROUP BY o.sku
""",
)
"""What was cancelled. The table has forgotten those orders; its log has not."""

VIEWS = (REVENUE, CONVERSION, SPENDING, PRIORITY_ORDERS, CANCELLED)
"""All of them, each after the ones it reads."""
