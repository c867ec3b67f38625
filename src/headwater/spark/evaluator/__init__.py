"""What Spark evaluates in this process: expressions and operators, over tables in memory."""
