package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// settleTime is how long a device list may take to get from a plugin into the manager.
const settleTime = 60 * time.Second

// plugins are the device plugins of a node, each a gRPC server on its own socket.
type plugins struct {
	manager *devicemanager.ManagerImpl
	dir     string // directory of the sockets, including the kubelet's, under a short name
	stubs   map[string]*plugin.Stub
	opinion map[string][]string // the ids that each resource's plugin prefers, in order
	told    map[string][]device // the last list of each plugin
}

func startPlugins(manager *devicemanager.ManagerImpl, sockets string, lists []deviceList) (*plugins, error) {
	p := &plugins{
		manager: manager,
		dir:     filepath.Join(sockets, "kubelet"),
		stubs:   map[string]*plugin.Stub{},
		opinion: map[string][]string{},
		told:    map[string][]device{},
	}
	if err := p.report(lists); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// report lets each plugin send its list, and starts new plugins. It does so one by one: the manager
// writes its checkpoint outside its lock, so with two lists at the same time the older state might
// be written last. For the same reason an unchanged list isn't sent again: it would count as
// settled before it is written.
func (p *plugins) report(lists []deviceList) error {
	for _, list := range lists {
		devices := toDevices(list)
		p.opinion[list.Resource] = list.Preferred
		if last, ok := p.told[list.Resource]; ok && reflect.DeepEqual(last, list.IDs) {
			continue
		}
		p.told[list.Resource] = list.IDs
		if stub := p.stubs[list.Resource]; stub != nil {
			stub.Update(devices)
		} else if err := p.register(list.Resource, devices); err != nil {
			return fmt.Errorf("device plugin %s: %w", list.Resource, err)
		}
		if err := p.settle(list); err != nil {
			return err
		}
	}
	return nil
}

func (p *plugins) register(resource string, devices []*pluginapi.Device) error {
	socket := filepath.Join(p.dir, fmt.Sprintf("plugin%d.sock", len(p.stubs)))
	stub := call[*plugin.Stub](plugin.NewDevicePluginStub, devices, socket, resource, false, true)
	stub.SetAllocFunc(allocateDevices)
	prefer(stub.SetGetPreferredAllocFunc, func() []string { return p.opinion[resource] })
	if err := call[error](stub.Start); err != nil {
		return err
	}
	p.stubs[resource] = stub
	return call[error](stub.Register, filepath.Join(p.dir, "kubelet.sock"), resource, "")
}

// allocateDevices answers for each container; no device needs any setup. The stub's devices are
// values up to 1.33 and pointers since.
func allocateDevices[D any](r *pluginapi.AllocateRequest, _ map[string]D) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for range r.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}

// prefer gives a plugin a preference: the available ids that come first in a list.
func prefer[
	F ~func(*pluginapi.PreferredAllocationRequest, map[string]D) (*pluginapi.PreferredAllocationResponse, error),
	D any,
](set func(F), opinion func() []string) {
	set(func(r *pluginapi.PreferredAllocationRequest, _ map[string]D) (*pluginapi.PreferredAllocationResponse, error) {
		response := &pluginapi.PreferredAllocationResponse{}
		for _, asked := range r.ContainerRequests {
			ids := asked.MustIncludeDeviceIDs
			for _, id := range opinion() {
				if len(ids) < int(asked.AllocationSize) && slices.Contains(asked.AvailableDeviceIDs, id) && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			response.ContainerResponses = append(response.ContainerResponses,
				&pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids})
		}
		return response, nil
	})
}

func (p *plugins) stop() {
	for _, stub := range p.stubs {
		if err := call[error](stub.Stop); err != nil {
			klog.ErrorS(err, "A device plugin did not stop")
		}
	}
}

func toDevices(list deviceList) []*pluginapi.Device {
	devices := []*pluginapi.Device{}
	for _, d := range list.IDs {
		it := &pluginapi.Device{ID: d.ID, Health: pluginapi.Healthy}
		if d.Healthy != nil && !*d.Healthy {
			it.Health = pluginapi.Unhealthy
		}
		if d.NUMA != nil {
			it.Topology = &pluginapi.TopologyInfo{}
			for _, id := range d.NUMA {
				it.Topology.Nodes = append(it.Topology.Nodes, &pluginapi.NUMANode{ID: int64(id)})
			}
		}
		devices = append(devices, it)
	}
	return devices
}

// settle waits until a list has arrived. It travels by gRPC to a goroutine of the manager, which
// writes the checkpoint at the end.
func (p *plugins) settle(list deviceList) error {
	for deadline := time.Now().Add(settleTime); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		if p.hasArrived(list) && p.isWritten(list) {
			return nil
		}
	}
	return fmt.Errorf("device plugin %s: its devices did not arrive within %s", list.Resource, settleTime)
}

func (p *plugins) hasArrived(list deviceList) bool {
	resource := list.Resource
	known := call[devicemanager.ResourceDeviceInstances](p.manager.GetAllocatableDevices)[resource]
	healthy := 0
	for _, want := range toDevices(list) {
		if want.Health != pluginapi.Healthy {
			continue
		}
		healthy++
		got, ok := known[want.ID]
		if !ok || !slices.Equal(nodesOf(got.Topology), nodesOf(want.Topology)) ||
			(got.Topology == nil) != (want.Topology == nil) {
			return false
		}
	}
	total := invoke(p.manager.GetCapacity)[0].Interface().(v1.ResourceList)
	for name, count := range total {
		if string(name) == resource {
			return len(known) == healthy && count.Value() == int64(len(list.IDs))
		}
	}
	return false
}

func nodesOf(topology *pluginapi.TopologyInfo) []int64 {
	ids := []int64{}
	for _, node := range topology.GetNodes() {
		ids = append(ids, node.ID)
	}
	return ids
}

func (p *plugins) isWritten(list deviceList) bool {
	var file struct {
		Data struct{ RegisteredDevices map[string][]string }
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "kubelet_internal_checkpoint"))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return false
	}
	var want []string
	for _, d := range toDevices(list) {
		if d.Health == pluginapi.Healthy {
			want = append(want, d.ID)
		}
	}
	got := file.Data.RegisteredDevices[list.Resource]
	sort.Strings(want)
	sort.Strings(got)
	return slices.Equal(got, want)
}

func (s *server) devices(raw json.RawMessage) any {
	var args struct {
		Devices []deviceList `json:"devices"`
	}
	decodeStrict(raw, &args)
	if err := s.node.plugins.report(args.Devices); err != nil {
		panic(err)
	}
	return empty{}
}

func (n *node) hasPlugins() bool { return len(n.plugins.stubs) > 0 }

// heldDevices returns nil on a node without device plugins.
func (n *node) heldDevices(uid, name string) *map[string][]string {
	if !n.hasPlugins() {
		return nil
	}
	held := map[string][]string{}
	for resource, instances := range n.devices.GetDevices(uid, name) {
		for id := range instances {
			held[resource] = append(held[resource], id)
		}
		sort.Strings(held[resource])
	}
	return &held
}
