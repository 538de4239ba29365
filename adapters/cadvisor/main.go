// Adapter for the discovery in cAdvisor's library.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/google/cadvisor/lib/utils/sysinfo"
	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "cAdvisor", Version: "0.60.5", Language: "Go",
	Kubernetes: []string{"1.37"}, Level: "kubelet",
	Operations: []string{"discover"},
	Homepage:   "https://github.com/google/cadvisor",
	Issues:     "https://github.com/google/cadvisor/issues",
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-discover" {
		discoverBelow(os.Args[2])
		return
	}
	adapter.Serve(hello, map[string]adapter.Handler{"discover": adapter.On(discover)})
}

// found is the output of the discovery process.
type found struct {
	Machine *model.MachineInfo
	Error   string
}

// discover runs a separate process. cAdvisor's paths are fixed, so that process changes its root
// directory, in a user namespace if necessary.
func discover(args adapter.DiscoverArgs) adapter.Answer {
	command := exec.Command("/proc/self/exe", "-discover", args.Root)
	if os.Geteuid() != 0 {
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
	}
	var said strings.Builder
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, said.String()))
	}
	var result found
	adapter.Check(json.Unmarshal(output, &result))
	if result.Error != "" {
		return adapter.StartRefused("discovery", result.Error)
	}
	var info adapter.MachineInfo
	adapter.Convert(result.Machine, &info)
	return adapter.OK(info)
}

func discoverBelow(root string) {
	adapter.Check(syscall.Chroot(root))
	adapter.Check(os.Chdir("/"))
	var result found
	var err error
	if result.Machine, err = read(); err != nil {
		result.Error = err.Error()
	}
	adapter.Check(json.NewEncoder(os.Stdout).Encode(result))
}

// read makes the readings of machine.Info that the kubelet's managers use, in the same order and
// with the same consequences. The others (clock, disks, networks) need files that a tree doesn't
// have.
func read() (*model.MachineInfo, error) {
	files := sysfs.NewRealSysFs()
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	memory, err := machine.GetMachineMemoryCapacity()
	if err != nil {
		return nil, err
	}
	hugepages, err := sysinfo.GetHugePagesInfo(files, "/sys/kernel/mm/hugepages/")
	if err != nil {
		return nil, err
	}
	topology, cores, err := machine.GetTopology(files)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Failed to get topology information:", err)
	}
	return &model.MachineInfo{
		NumCores:         cores,
		NumPhysicalCores: machine.GetPhysicalCores(cpuinfo),
		NumSockets:       machine.GetSockets(cpuinfo),
		MemoryCapacity:   memory,
		HugePages:        hugepages,
		Topology:         topology,
	}, nil
}
