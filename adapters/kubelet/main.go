// Command kubelet puts the kubelet's resource managers and cAdvisor's discovery behind the
// conformance protocol: requests on standard input, responses on standard output, logs on standard
// error.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func main() {
	klog.InitFlags(nil)
	root := flag.String("discover", "", "print the MachineInfo of the tree at this `root` and exit")
	flags := flag.Bool("flags", false, "print the flags of the kubelet's command line and exit")
	gates := flag.Bool("gates", false, "print the feature gates that the kubelet knows and exit")
	flag.Parse()
	if *root != "" {
		discoverAndExit(*root)
	}
	if *flags {
		printFlagsAndExit()
	}
	if *gates {
		printGatesAndExit()
	}
	// A panic in the reconcile loop's goroutine is reported by the operation that ran the pass.
	utilruntime.ReallyCrash = false
	go keepCoverage()
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	server, err := newServer()
	if err != nil {
		return err
	}
	defer server.close()
	defer writeCoverage() // runs before the plugins stop, which takes time
	reader := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		response, err := server.respond(line)
		if err != nil {
			return err
		}
		if _, err := out.Write(response); err != nil {
			return err
		}
	}
}
