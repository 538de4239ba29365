"""Folders that others write to, too: temporary ones, state directories, trees of files.

Whoever runs a stranger's program finds anything in them: symbolic links, pipes, devices, files
without end, a hundred thousand files, a thousand levels. Everything that this project makes, reads,
writes and removes in such a folder goes through this package. So do the files and folders that
commands write their output to: `output_files` and `output_folder`.
"""
