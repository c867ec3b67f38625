"""Nexmark: people, auctions and bids of an auction house, and 23 queries over them, for tests and benchmarks."""
