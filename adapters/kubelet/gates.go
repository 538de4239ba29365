package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	_ "k8s.io/kubernetes/pkg/features" // registers most gates, including those of the client library
)

// pristineGates are the release's feature gates before any configuration. The kubelet's packages
// read a global variable, so every start puts a fresh copy there.
var pristineGates = registeredGates().DeepCopy()

// registeredGates returns the global gates: those that packages register on import, and those that
// the kubelet's command and its server add.
func registeredGates() mutableGates {
	gates := utilfeature.DefaultMutableFeatureGate
	utilruntime.Must(logsapi.AddFeatureGates(gates))
	utilruntime.Must(metricsfeatures.AddFeatureGates(gates))
	return gates
}

// gate is a feature gate in the release's registry.
type gate struct {
	Maturity string   `json:"maturity"`
	Default  bool     `json:"default"`
	Locked   bool     `json:"locked"`
	Needs    []string `json:"needs"`
}

// printGatesAndExit prints the feature gates that the kubelet knows, by name. gates.py turns them
// into a column of the reference's table.
func printGatesAndExit() {
	known := map[string]gate{}
	needs := dependencies(pristineGates)
	for name, spec := range pristineGates.GetAll() {
		if name == "AllAlpha" || name == "AllBeta" {
			continue
		}
		found := gate{Maturity: maturity(spec), Default: spec.Default, Locked: spec.LockToDefault, Needs: []string{}}
		for _, needed := range needs[name] {
			found.Needs = append(found.Needs, string(needed))
		}
		slices.Sort(found.Needs)
		known[string(name)] = found
	}
	printAndExit("gates", known)
}

// printAndExit prints data about the kubelet of this release.
func printAndExit(what string, known any) {
	version, err := kubeletVersion()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(map[string]any{"kubernetes": minor(version), what: known})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// dependencies returns the dependencies of each gate. Releases before 1.35 neither declare nor
// check them.
func dependencies(gates any) map[featuregate.Feature][]featuregate.Feature {
	if checked, ok := gates.(interface {
		Dependencies() map[featuregate.Feature][]featuregate.Feature
	}); ok {
		return checked.Dependencies()
	}
	return nil
}

// maturity spells out the registry's ALPHA, BETA and DEPRECATED, and its empty text for stable.
func maturity(spec featuregate.FeatureSpec) string {
	switch stage := spec.PreRelease; string(stage) {
	case "ALPHA":
		return "alpha"
	case "BETA":
		return "beta"
	case "DEPRECATED":
		return "deprecated"
	case "":
		return "stable"
	default:
		panic(fmt.Sprintf("a feature gate of unknown maturity %q", stage))
	}
}
