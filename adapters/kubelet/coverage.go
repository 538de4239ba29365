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

// keepCoverage writes what a program built with -cover has reached, from time to time: Go itself
// does so at a regular end only.
func keepCoverage() {
	for os.Getenv("GOCOVERDIR") != "" {
		time.Sleep(coveragePeriod)
		writeCoverage()
	}
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
