module numaproof.example/cadvisor

go 1.26.0

require (
	github.com/google/cadvisor/lib v0.60.5
	numaproof.example/adapter v0.0.0
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/moby/sys/mountinfo v0.7.2 // indirect
	golang.org/x/sys v0.47.0 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)

replace numaproof.example/adapter => ../common/go
