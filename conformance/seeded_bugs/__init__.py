"""The gauntlet: seeded bugs, each a small named change to the reference, that must be caught.

A suite that is green on a correct program says little; one that is red on every bug it was ever
shown says which bugs it would catch. `catalogue.BUGS` are the bugs, `seeding.Bug.implementation`
is a reference that has one, and `hunting` looks for it with the tables and by fuzzing.
"""
