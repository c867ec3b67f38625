"""The oracle: the naive answer that everything is compared with. It knows no plan, no state and no change."""
