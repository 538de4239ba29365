"""The machines, pods, containers and devices that tests are made of."""
