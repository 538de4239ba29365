package adapter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// CPUSet is a set of CPUs. Its text form is the Linux list format, such as 0-3,8.
type CPUSet []int

// ParseCPUSet parses the Linux list format.
func ParseCPUSet(text string) (CPUSet, error) {
	var cpus CPUSet
	for _, part := range strings.Split(text, ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		high, err := strconv.Atoi(last)
		if err != nil {
			return nil, err
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus.sorted(), nil
}

// String returns the Linux list format, with ranges as long as possible.
func (s CPUSet) String() string {
	var parts []string
	sorted := s.sorted()
	for first := 0; first < len(sorted); {
		last := first
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		part := strconv.Itoa(sorted[first])
		if last > first {
			part += "-" + strconv.Itoa(sorted[last])
		}
		parts = append(parts, part)
		first = last + 1
	}
	return strings.Join(parts, ",")
}

// Without returns the CPUs that aren't in the other set.
func (s CPUSet) Without(others CPUSet) CPUSet {
	return slices.DeleteFunc(slices.Clone(s), func(cpu int) bool { return slices.Contains(others, cpu) })
}

func (s CPUSet) sorted() CPUSet {
	return slices.Compact(slices.Sorted(slices.Values(s)))
}

// MarshalJSON encodes the set as in the protocol.
func (s CPUSet) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON decodes the set as in the protocol.
func (s *CPUSet) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	cpus, err := ParseCPUSet(text)
	*s = cpus
	return err
}
