"""Examples that come with the package, so that `headwater demo` works wherever it is installed."""
