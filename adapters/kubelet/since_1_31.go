//go:build since_1_31

package main

import (
	"context"

	"k8s.io/component-base/featuregate"
)

// mutableGates is a registry of feature gates with versions.
type mutableGates = featuregate.MutableVersionedFeatureGate

// panicHandler receives panics that apimachinery passes to its handlers.
func panicHandler(handle func(any)) func(context.Context, any) {
	return func(_ context.Context, cause any) { handle(cause) }
}
