"""Which releases give the same answers: notes of what is consulted while one of them answers.

Releases differ in a few facts: attributes of a `Release`, feature gates, options, methods of rules.
While the reference answers as one release, it consults some of these. `Notes` compare each fact
that is consulted with that of every other release, and drop the releases where it is another.

A release that is left at the end gives the same answers. The reference computes nothing from the
release but by way of the `Release` that it is given, and is deterministic. So, by induction over
the consultations: up to the first of them both releases do the same; there both are told the same,
and so do the same up to the next. What is told by a fact may be compared as a whole, where it
can't be seen what of it counts; that drops more releases, never fewer.

Files are written in the formats of every release, and nothing is told by that: whoever reads them
compares what was written.

What depends on the gates of a configuration is worked out in every release under its own gates.
Nobody has to know of this: the rules are given a `Release`, and see no difference.
"""
