// A minimal adapter: it assigns the lowest CPUs, and gives one answer of every other kind.
package main

import (
	"fmt"

	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "lowest", Version: "1", Language: "Go", Kubernetes: []string{"1.37"},
	Level: "invariants", Operations: []string{"assign"},
}

func assign(args adapter.AssignArgs) adapter.Answer {
	if len(args.Options) > 0 {
		return adapter.NotSupported("options")
	}
	fmt.Println("foreign code prints what it likes")
	if args.Count > len(args.Available) {
		return adapter.AdmissionRefused(adapter.UnexpectedAdmissionError, "not enough")
	}
	return adapter.OK(adapter.Assigned{CPUs: args.Available[:args.Count]})
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"assign": adapter.On(assign)})
}
