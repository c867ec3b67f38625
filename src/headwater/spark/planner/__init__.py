"""From SQL to a plan of ours: Spark resolves and optimises, what it found becomes our operators, or is refused."""
