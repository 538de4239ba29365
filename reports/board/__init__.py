"""A site made of the reports of many runs: who meets which requirement, and what was found.

`reading` finds runs below the folders that a user names, as streams of events or as board data;
`digest` makes compact `data` of events; `standing` compares the runs of one and of
several implementations; `pages` makes of that what the templates show; `site` writes it. The same
runs give the same bytes, in whatever order they are named.
"""
