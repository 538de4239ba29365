package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

func (s *server) discover(raw json.RawMessage) any {
	var args struct {
		Kubernetes string `json:"kubernetes"`
		Root       string `json:"root"`
	}
	decodeStrict(raw, &args)
	if answer, ok := s.checkRelease(args.Kubernetes); !ok {
		return answer
	}
	info, err := discoverIn(args.Root)
	if err != nil {
		return refusedStart{Stage: "discovery", Message: err.Error()}
	}
	return info
}

// discoverIn runs discovery in a separate process. cAdvisor's paths are fixed, so that process
// changes its root directory, in a user namespace if necessary.
func discoverIn(root string) (*machineInfo, error) {
	if stat, err := os.Stat(root); err != nil || !stat.IsDir() {
		panic(reject("%q is no directory", root))
	}
	command := exec.Command("/proc/self/exe", "-discover", root)
	if os.Geteuid() != 0 {
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		panic(fmt.Sprintf("discovery in %s: %v: %s", root, err, errors.String()))
	}
	var result discovered
	decodeOpen(output, &result)
	if result.Error != "" {
		return nil, fmt.Errorf("%s", result.Error)
	}
	return result.Machine, nil
}

type discovered struct {
	Machine *machineInfo
	Error   string
}

// discoverAndExit is the main function of that process.
func discoverAndExit(root string) {
	err := syscall.Chroot(root)
	if err == nil {
		err = os.Chdir("/")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var result discovered
	if result.Machine, err = readMachine(); err != nil {
		result.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// readMachine makes the readings that the managers need, in the order of cAdvisor's machine.Info
// and with the same consequences: if the topology can't be read, the machine has no CPUs. The other
// readings (clock, disks, networks, cloud) don't matter here and need files that a tree may not
// have.
func readMachine() (*machineInfo, error) {
	files := newSysFs()
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	memory, err := memoryCapacity()
	if err != nil {
		return nil, err
	}
	hugepages, err := hugePages(files, "/sys/kernel/mm/hugepages/")
	if err != nil {
		return nil, err
	}
	topology, cores, err := topologyAndCores(files)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Failed to get topology information:", err)
	}
	return &machineInfo{
		NumCores:         cores,
		NumPhysicalCores: physicalCores(cpuinfo),
		NumSockets:       sockets(cpuinfo),
		MemoryCapacity:   memory,
		HugePages:        hugepages,
		Topology:         topology,
	}, nil
}
