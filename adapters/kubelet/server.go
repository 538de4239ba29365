package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

const protocolVersion = 1

// server answers requests one by one. node is nil until a start succeeds.
type server struct {
	node    *node
	sockets string     // a short path for device plugin sockets, whose length is limited
	version string     // the kubelet's version, such as "1.35.4"
	blocks  blockNames // the managers' blocks; nil if they aren't counted
}

func newServer() (*server, error) {
	version, err := kubeletVersion()
	if err != nil {
		return nil, err
	}
	sockets, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		return nil, err
	}
	return &server{sockets: sockets, version: version, blocks: readBlockNames(managers)}, nil
}

func (s *server) close() {
	s.stop()
	os.RemoveAll(s.sockets)
}

// kubeletVersion returns the version of k8s.io/kubernetes in this build.
func kubeletVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dependency := range info.Deps {
			if dependency.Path == "k8s.io/kubernetes" {
				return strings.TrimPrefix(dependency.Version, "v"), nil
			}
		}
	}
	return "", fmt.Errorf("built without module information: the kubelet's version is unknown")
}

func (s *server) release() string { return minor(s.version) }

// minor returns the minor release of a version.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return parts[0] + "." + parts[1]
}

type operation struct {
	run       func(*server, json.RawMessage) any
	needsNode bool
}

var operations = map[string]operation{
	"hello":     {(*server).hello, false},
	"start":     {(*server).start, false},
	"admit":     {(*server).admit, true},
	"remove":    {(*server).remove, true},
	"end":       {(*server).end, true},
	"devices":   {(*server).devices, true},
	"hints":     {(*server).hints, true},
	"state":     {(*server).state, true},
	"reconcile": {(*server).reconcile, true},
	"merge":     {(*server).merge, false},
	"assign":    {(*server).assign, false},
	"discover":  {(*server).discover, false},
	"coverage":  {(*server).coverage, false},
}

func (s *server) respond(line []byte) ([]byte, error) {
	var req request
	answer := s.guarded(func() any {
		decodeStrict(line, &req)
		op, known := operations[req.Op]
		if !known {
			return unsupported{What: req.Op}
		}
		if op.needsNode && s.node == nil {
			panic(reject("%s needs a node, and no start has succeeded", req.Op))
		}
		return op.run(s, req.Args)
	})
	return encode(req.ID, answer)
}

// guarded turns a panic into an answer, so that the process survives: a fault, unless the panic says
// what is unsupported.
func (s *server) guarded(f func() any) (answer any) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case unsupported:
			answer = cause
		case badRequest:
			answer = fault{Message: cause.Error()}
		case loopPanic:
			answer = fault{Message: fmt.Sprint(cause.cause), Trace: cause.trace}
		default:
			answer = fault{Message: fmt.Sprint(cause), Trace: string(debug.Stack())}
		}
	}()
	return f()
}

// checkRelease panics with the answer for other releases than this program's.
func (s *server) checkRelease(asked string) (unsupported, bool) {
	if asked == "" || asked == s.release() {
		return unsupported{}, true
	}
	return unsupported{What: "kubernetes " + asked}, false
}

func (s *server) hello(raw json.RawMessage) any {
	var args struct {
		Protocol [2]int `json:"protocol"`
		Harness  string `json:"harness"`
	}
	decodeStrict(raw, &args)
	beginCoverage()
	if protocolVersion < args.Protocol[0] || args.Protocol[1] < protocolVersion {
		return unsupported{What: fmt.Sprintf("protocol %d to %d", args.Protocol[0], args.Protocol[1])}
	}
	operations := []string{"start", "admit", "remove", "end", "devices", "hints", "state", "reconcile",
		"merge", "assign", "discover"}
	if s.blocks != nil {
		operations = append(operations, "coverage")
	}
	return map[string]any{
		"protocol":   protocolVersion,
		"name":       "kubelet",
		"version":    s.version,
		"language":   "Go",
		"kubernetes": []string{s.release()},
		"level":      "kubelet",
		"operations": operations,
		"policies": map[string][]string{
			"cpu":      {"none", "static"},
			"memory":   {"None", "Static"},
			"topology": {"none", "best-effort", "restricted", "single-numa-node"},
			"scope":    {"container", "pod"},
		},
		"options": map[string][]string{
			"cpu":      cpuOptions(),
			"topology": {"prefer-closest-numa-nodes", "max-allowable-numa-nodes"},
		},
		"features": []string{"init-containers", "sidecars", "container-removal", "restart",
			"configuration-validation", "reconfiguration", "feature-gates", "pod-level-resources",
			"pod-level-resource-managers", "huge-pages", "checkpoint-files", "quota",
			"effective-configuration", "refused-pods", "flags", "preferred-devices"},
		"homepage": "https://kubernetes.io",
		"issues":   "https://github.com/kubernetes/kubernetes/issues",
	}
}
