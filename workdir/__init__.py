"""Folders that other programs also write to: temporary folders, state directories and trees.

An untrusted program can leave anything in them: symbolic links, pipes, devices, endless files, a
hundred thousand files, a thousand nested folders. Code that creates, reads, writes or removes files
in such a folder must use this package. `output_files` and `output_folder` are for the output of
commands.
"""
