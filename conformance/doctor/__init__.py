"""A dialogue with a program that may break every rule, and what is wrong with each line of it."""
