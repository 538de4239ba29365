// Command kubelet is the kubelet as released: only the main function is here.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
)

func main() { os.Exit(cli.Run(newCommand())) }
