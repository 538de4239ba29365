"""Cases as Go tests for the kubelet's own packages: `promote --go`."""
