package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/coverage"
	"time"
)

// managers is the path of the packages whose coverage is reported.
const managers = "k8s.io/kubernetes/pkg/kubelet/cm/"

// coveragePeriod is shorter than the time limits of harnesses, so that a program killed in an
// endless call has written its coverage before.
const coveragePeriod = 5 * time.Second

var coverageTicker = time.NewTicker(coveragePeriod)

// keepCoverage periodically writes the coverage of a program built with -cover. Go itself does so
// only at a regular exit.
func keepCoverage() {
	for range coverageTicker.C {
		writeCoverage()
	}
}

// beginCoverage writes the coverage before a `hello` and resets the counters, to separate the code
// reached between two of them. Without -covermode=atomic the counters aren't reset. The next file
// is written a whole period later, so whoever receives the answer has time to read this one. Without
// GOCOVERDIR the operation `coverage` reads the counters, and nothing else resets them.
func beginCoverage() {
	if os.Getenv("GOCOVERDIR") == "" {
		return
	}
	coverageTicker.Reset(coveragePeriod)
	writeCoverage()
	_ = coverage.ClearCounters()
}

func writeCoverage() {
	dir := os.Getenv("GOCOVERDIR")
	if dir == "" {
		return
	}
	if err := coverage.WriteCountersDir(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (s *server) coverage(_ json.RawMessage) any {
	if s.blocks == nil {
		return unsupported{What: "coverage: build with -cover -covermode=atomic, and don't set GOCOVERDIR"}
	}
	reached, err := s.blocks.reached()
	if err != nil {
		panic(err)
	}
	return map[string]any{"blocks": reached}
}
