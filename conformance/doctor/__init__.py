"""`numaproof doctor`: a dialogue with a program, and checks of every line that it writes."""
