"""What runs on executors: stages of functions, and the process that Python workers are forked from."""
