//go:build until_1_30

package main

import "k8s.io/component-base/featuregate"

// mutableGates is a registry of feature gates. Versions were added in 1.31.
type mutableGates = featuregate.MutableFeatureGate

// panicHandler receives panics that apimachinery passes to its handlers.
func panicHandler(handle func(any)) func(any) { return handle }
