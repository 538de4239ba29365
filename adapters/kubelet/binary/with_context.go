//go:build since_1_34

package main

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func newCommand() *cobra.Command { return app.NewKubeletCommand(context.Background()) }
