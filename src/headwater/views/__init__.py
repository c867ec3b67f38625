"""Views: what a query becomes when it is maintained by change."""
