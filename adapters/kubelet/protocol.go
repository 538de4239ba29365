package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
)

// request is a line from the harness.
type request struct {
	ID   json.RawMessage `json:"id"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args"`
}

// Answers other than a plain result, which is sent as "ok".
type (
	refusedStart struct {
		Stage   string `json:"stage"`
		Message string `json:"message"`
	}
	refusedPod struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Pod     *fate  `json:"pod,omitempty"`
	}
	fate struct {
		Phase   v1.PodPhase `json:"phase"`
		Reason  string      `json:"reason"`
		Message string      `json:"message"`
		Event   string      `json:"event"`
	}
	unsupported struct {
		What string `json:"what"`
	}
	fault struct {
		Message string `json:"message"`
		Trace   string `json:"trace"`
	}
)

// badRequest is the cause of a fault that the caller is responsible for, so no trace is needed.
type badRequest struct{ error }

func reject(format string, values ...any) badRequest {
	return badRequest{fmt.Errorf(format, values...)}
}

type empty struct{}

type numaHint struct {
	NUMA      []int `json:"numa"`
	Preferred bool  `json:"preferred"`
}

type memoryBlock struct {
	NUMA []int  `json:"numa"`
	Type string `json:"type"`
	Size uint64 `json:"size"`
}

// container has a container's resources. Devices is absent on nodes without device plugins, and
// Quota unless the start asked for it.
type container struct {
	CPUs      string               `json:"cpus"`
	Exclusive string               `json:"exclusive"`
	Memory    []memoryBlock        `json:"memory"`
	Affinity  numaHint             `json:"affinity"`
	Devices   *map[string][]string `json:"devices,omitempty"`
	Quota     *bool                `json:"quota,omitempty"`
}

type device struct {
	ID      string `json:"id"`
	NUMA    []int  `json:"numa"`
	Healthy *bool  `json:"healthy"`
}

type deviceList struct {
	Resource  string   `json:"resource"`
	IDs       []device `json:"ids"`
	Preferred []string `json:"preferred"`
}

// decodeStrict decodes a part that this protocol defines. Unknown fields are errors.
func decodeStrict(raw json.RawMessage, into any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		panic(badRequest{err})
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		panic(reject("text after the JSON value"))
	}
}

// decodeOpen decodes a part that Kubernetes or cAdvisor defines. Unknown fields are ignored.
func decodeOpen(raw json.RawMessage, into any) {
	if err := json.Unmarshal(raw, into); err != nil {
		panic(badRequest{err})
	}
}

// encode returns the line of a response.
func encode(id json.RawMessage, answer any) ([]byte, error) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	field := "ok"
	switch answer.(type) {
	case refusedStart, refusedPod:
		field = "refused"
	case unsupported:
		field = "unsupported"
	case fault:
		field = "fault"
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(map[string]any{"id": id, field: answer})
	return line.Bytes(), err
}
