// Run with `go test`; numaproof must be installed (requirements-conformance.txt).
package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestChooseCPUsReturnsTheRequestedNumberOfFreeCPUs(t *testing.T) {
	var machine Machine
	free := []int{1, 3, 5, 7}
	chosen := chooseCPUs(2, free, machine)
	if len(chosen) != 2 || len(without(chosen, free)) > 0 {
		t.Errorf("expected 2 of %v, got %v", free, chosen)
	}
}

func TestAdapterSpeaksTheProtocol(t *testing.T) {
	adapter := filepath.Join(t.TempDir(), "adapter")
	run(t, "go", "build", "-o", adapter, ".")
	run(t, "numaproof", "doctor", adapter)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, output)
	}
}
