"""What is declared, typed: relations, views, their versions and suspensions, what they share, names of state."""
