"""Programs under test as processes: each below a supervisor that ends all that it has started."""
