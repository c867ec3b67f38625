"""The Spark of this process: its settings, its Java, starting it, and what is left when it ends."""
