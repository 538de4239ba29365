"""The machines, pods and containers that tests are made of."""
