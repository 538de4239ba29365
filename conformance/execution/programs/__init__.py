"""Programs run by the harness, each below a supervisor that ends all of its descendants."""
