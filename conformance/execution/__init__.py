"""Running cases: implementations, sessions, the player and the runner."""
