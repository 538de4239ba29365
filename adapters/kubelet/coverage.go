package main

import (
	"fmt"
	"os"
	"runtime/coverage"
	"time"
)

// coveragePeriod is shorter than any time that a harness gives a call: a program that is killed in
// an endless call has written what it reached before.
const coveragePeriod = 5 * time.Second

var coverageTicker = time.NewTicker(coveragePeriod)

// keepCoverage writes what a program built with -cover has reached, from time to time: Go itself
// does so at a regular end only.
func keepCoverage() {
	for range coverageTicker.C {
		writeCoverage()
	}
}

// beginCoverage writes what was reached before a greeting, and counts anew, so that what lies
// between two greetings is told apart. Without -covermode=atomic the counters go on. The next file
// is a whole period away: whoever hears the greeting can read what there is.
func beginCoverage() {
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
