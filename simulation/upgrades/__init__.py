"""Answers what becomes of a node when its kubelet is upgraded or downgraded."""
