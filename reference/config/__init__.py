"""The kubelet's configuration: flags, fields, feature gates, reservations and thresholds."""
