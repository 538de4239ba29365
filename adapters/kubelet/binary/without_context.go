//go:build until_1_33

package main

import (
	"github.com/spf13/cobra"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func newCommand() *cobra.Command { return app.NewKubeletCommand() }
