"""Running a case: the implementation, the session with it, the player and the runner."""
