"""Plans: what a query becomes when it is maintained by change. Operators as data, and what is told of them."""
