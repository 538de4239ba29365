"""Folders that other programs also write to: temporary folders, state directories and trees.

An untrusted program can leave anything in them: symbolic links, pipes, devices, endless files, a
hundred thousand files, a thousand levels. All code of this project that creates, reads, writes or
removes files in such a folder uses this package. The files and folders for the output of commands
are also here: `output_files` and `output_folder`.
"""
