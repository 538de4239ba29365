"""What a node offers to pods as a whole: its allocatable resources, and room by preemption."""
