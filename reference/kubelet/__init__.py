"""The kubelet around the managers: its configuration, feature gates and eviction thresholds."""
