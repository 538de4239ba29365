//go:build until_1_30

package main

import "k8s.io/component-base/featuregate"

// mutableGates is a registry of feature gates; their versions came with 1.31.
type mutableGates = featuregate.MutableFeatureGate

// panicHandler takes what apimachinery hands to its handlers of panics.
func panicHandler(handle func(any)) func(any) { return handle }
