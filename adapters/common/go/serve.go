// Package adapter is numaproof's protocol for adapters in Go: messages as types, CPU sets, pods as
// far as the CPU Manager reads them, and the loop that answers requests (docs/protocol.md).
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

// Handler answers one operation from its arguments as they came.
type Handler func(args json.RawMessage) Answer

// On makes a handler of a function with typed arguments: those of messages.go, or one's own struct
// with what an operation needs. Arguments that do not fit are a fault.
func On[Args any](answer func(Args) Answer) Handler {
	return func(raw json.RawMessage) Answer {
		var args Args
		Check(json.Unmarshal(raw, &args))
		return answer(args)
	}
}

// Serve answers requests on standard input until it ends: `hello` with what is claimed, every other
// operation by its handler. A handler's panic is answered as a fault with message and trace. What
// foreign code prints goes to standard error, for standard output is the protocol's.
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
			return fmt.Errorf("a request is no JSON object of the protocol: %w", err)
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

// encoded is the line of a response; whatever breaks on the way to it is a fault.
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

// Convert makes one type from another through JSON: cAdvisor's MachineInfo from ours, a v1.Pod from
// the manifest as it came.
func Convert(from, to any) {
	Check(json.Unmarshal(Must(json.Marshal(from)), to))
}

// Check ends the call with a fault if there is an error; so does Must.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Must is the value, or ends the call with a fault.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}
