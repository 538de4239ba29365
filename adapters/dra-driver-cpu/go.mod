module numaproof.example/dra-driver-cpu

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	github.com/kubernetes-sigs/dra-driver-cpu v0.2.0
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2
	numaproof.example/adapter v0.0.0
)

require k8s.io/apimachinery v0.36.0 // indirect

replace numaproof.example/adapter => ../common/go
