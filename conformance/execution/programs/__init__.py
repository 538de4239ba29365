"""Programs run by the harness, each under a supervisor that ends all of its descendants."""
