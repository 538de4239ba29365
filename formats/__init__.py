"""The formats in which operators describe a node: one package for each kind of input."""
