// Package adapter implements numaproof's protocol for adapters in Go: typed messages, CPU sets, the
// parts of pods that the CPU Manager reads, and the request loop (docs/protocol.md).
package adapter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// Handler answers an operation, given its undecoded arguments.
type Handler func(args json.RawMessage) Answer

// On turns a function with typed arguments into a handler. The arguments are those of messages.go
// or a struct of your own. Arguments of the wrong type are a fault.
func On[Args any](answer func(Args) Answer) Handler {
	return func(raw json.RawMessage) Answer {
		var args Args
		Check(json.Unmarshal(raw, &args))
		return answer(args)
	}
}

// Serve answers requests on standard input until it ends: `hello` with the claims, every other
// operation with its handler. A panic in a handler is answered as a fault with message and trace.
// Output of foreign code goes to standard error, because standard output carries the protocol.
func Serve(hello Hello, handlers map[string]Handler) {
	out := os.Stdout
	os.Stdout = os.Stderr
	Check(serve(os.Stdin, out, hello, handlers))
}

func serve(in io.Reader, out io.Writer, hello Hello, handlers map[string]Handler) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var request struct {
			ID   int
			Op   string
			Args json.RawMessage
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return fmt.Errorf("the request is not a JSON object of the protocol: %w", err)
		}
		handler := handlers[request.Op]
		switch {
		case request.Op == "hello":
			handler = func(json.RawMessage) Answer { return OK(hello) }
		case handler == nil:
			handler = func(json.RawMessage) Answer { return NotSupported("operation " + request.Op) }
		}
		if _, err := out.Write(append(encoded(request.ID, handler, request.Args), '\n')); err != nil {
			return err
		}
	}
}

// encoded returns the line of a response. A failure on the way becomes a fault.
func encoded(id int, handler Handler, args json.RawMessage) (line []byte) {
	defer func() {
		if broken := recover(); broken != nil {
			fault := &Fault{Message: fmt.Sprint(broken), Trace: string(debug.Stack())}
			line = Must(json.Marshal(response{ID: id, Answer: Answer{Fault: fault}}))
		}
	}()
	return Must(json.Marshal(response{ID: id, Answer: handler(args)}))
}

type response struct {
	ID int `json:"id"`
	Answer
}

// Convert converts between types through JSON: MachineInfo to cAdvisor's type, or a manifest to a
// v1.Pod.
func Convert(from, to any) {
	Check(json.Unmarshal(Must(json.Marshal(from)), to))
}

// Check ends the call with a fault if err is not nil.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Must returns the value, or ends the call with a fault.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}
