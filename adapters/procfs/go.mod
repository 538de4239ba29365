module numaproof.example/procfs

go 1.26.0

require (
	github.com/prometheus/procfs v0.23.0
	numaproof.example/adapter v0.0.0
)

require (
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace numaproof.example/adapter => ../common/go
