"""A shop in ./.headwater/shop: two tables, and a view of them that is kept up to date."""

import headwater as hw

shop = hw.Pipeline("shop")

customers = shop.table("customers", "id BIGINT, name STRING, country STRING", key="id")
orders = shop.table("orders", "id BIGINT, customer_id BIGINT, cents BIGINT", key="id")

shop.view(
    "revenue",
    """
    SELECT c.country, count(*) AS orders, sum(o.cents) AS cents
    FROM orders o JOIN customers c ON o.customer_id = c.id
    GROUP BY c.country
    """,
    key="country",
)

if __name__ == "__main__":
    customers.upsert([{"id": 1, "name": "Ada", "country": "NO"}, {"id": 2, "name": "Bo", "country": "SE"}])
    position = orders.upsert(
        [
            {"id": 10, "customer_id": 1, "cents": 4_500},
            {"id": 11, "customer_id": 2, "cents": 900},
            {"id": 12, "customer_id": 1, "cents": 2_000},
        ]
    )
    print(f"stored at {position}")
