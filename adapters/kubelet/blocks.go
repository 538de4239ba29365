package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/coverage"
	"slices"
	"strings"
)

// blockNames has the names of the blocks of each instrumented function, by package: file, line, column
// and function, as in "cpumanager/policy_static.go:312.2 *staticPolicy.Allocate". A name is empty if the
// block isn't reported.
type blockNames [][][]string

// readBlockNames returns the blocks in files below a path, named without it. It returns nil if the
// program wasn't built with -cover -covermode=atomic, and if GOCOVERDIR is set, because `reached` would
// reset the counters of its files.
func readBlockNames(below string) blockNames {
	var meta bytes.Buffer
	if os.Getenv("GOCOVERDIR") != "" || coverage.ClearCounters() != nil || coverage.WriteMeta(&meta) != nil {
		return nil
	}
	file := coverageData(meta.Bytes())
	file.check("\x00cvm")
	packages := int(file.at(16).u64())
	names := make(blockNames, packages)
	for p := range names {
		offset := file.at(56 + 8*p).u64() // after the header of the file
		names[p] = packageBlocks(file.at(int(offset)), below)
	}
	return names
}

func packageBlocks(data *coverageData, below string) [][]string {
	functions := int(data.at(40).u32())
	table := data.at(44 + 4*functions) // after the header and the offsets
	texts := make([]string, table.uleb())
	for t := range texts {
		texts[t] = table.text()
	}
	blocks := make([][]string, functions)
	for f := range blocks {
		function := data.at(int(data.at(44 + 4*f).u32()))
		count, name, file := function.uleb(), texts[function.uleb()], texts[function.uleb()]
		path, isBelow := strings.CutPrefix(file, below)
		for range count {
			line, column := function.uleb(), function.uleb()
			function.uleb() // the end: line, column
			function.uleb()
			function.uleb() // the number of statements
			block := ""
			if isBelow {
				block = fmt.Sprintf("%s:%d.%d %s", path, line, column, name)
			}
			blocks[f] = append(blocks[f], block)
		}
	}
	return blocks
}

// reached returns the blocks that ran since its last call.
func (n blockNames) reached() ([]string, error) {
	var counters bytes.Buffer
	if err := coverage.WriteCounters(&counters); err != nil {
		return nil, err
	}
	if err := coverage.ClearCounters(); err != nil {
		return nil, err
	}
	file := coverageData(counters.Bytes())
	file.check("\x00cwm")
	segment := file.at(32) // after the header of the file
	functions, texts, arguments := segment.u64(), segment.u32(), segment.u32()
	data := segment.at(int(texts + arguments))
	names := []string{}
	for range functions {
		count := data.uleb()
		blocks := n[data.uleb()]
		function := blocks[data.uleb()]
		for b := range count {
			if data.uleb() > 0 && function[b] != "" {
				names = append(names, function[b])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// coverageData is the rest of a coverage file; internal/coverage/defs.go in Go's source describes it.
type coverageData []byte

const coverageVersion = 1

func (d *coverageData) check(magic string) {
	if version := d.at(4).u32(); string((*d)[:4]) != magic || version != coverageVersion {
		panic(fmt.Sprintf("the coverage data of this version of Go has version %d, not %d", version, coverageVersion))
	}
}

func (d *coverageData) at(offset int) *coverageData {
	rest := (*d)[offset:]
	return &rest
}

func (d *coverageData) u32() uint32 {
	value := binary.LittleEndian.Uint32(*d)
	*d = (*d)[4:]
	return value
}

func (d *coverageData) u64() uint64 {
	value := binary.LittleEndian.Uint64(*d)
	*d = (*d)[8:]
	return value
}

func (d *coverageData) uleb() uint64 {
	value, size := binary.Uvarint(*d)
	*d = (*d)[size:]
	return value
}

func (d *coverageData) text() string {
	size := d.uleb()
	value := string((*d)[:size])
	*d = (*d)[size:]
	return value
}
