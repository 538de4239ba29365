module numaproof.example/nri-plugins-allocator

go 1.26.0

// A folder of nri-plugins with a go.mod of its own, which is published nowhere and not needed here.
exclude github.com/containers/nri-plugins/pkg/topology v0.0.0

require (
	github.com/containers/nri-plugins v0.14.0
	numaproof.example/adapter v0.0.0
)

require (
	github.com/intel/goresctrl v0.13.0 // indirect
	k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738 // indirect
	sigs.k8s.io/yaml v1.4.0 // indirect
)

replace numaproof.example/adapter => ../common/go
