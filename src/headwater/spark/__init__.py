"""All that imports pyspark. Importing this package alone does not."""
