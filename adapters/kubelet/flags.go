package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// commandLine is the kubelet's set of flags, which write into these fields.
func commandLine(flags *options.KubeletFlags, config *kubeletconfig.KubeletConfiguration) *pflag.FlagSet {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.SetOutput(io.Discard)
	flags.AddFlags(set)
	options.AddKubeletConfigFlags(set, config)
	options.AddGlobalFlags(set)
	return set
}

// checkFlags returns the errors that the kubelet's command finds in its command line before it
// reads the configuration. It sets the feature gates in the flags.
func checkFlags(given []string) error {
	if len(given) == 0 {
		return nil
	}
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	flags := options.NewKubeletFlags()
	set := commandLine(flags, config)
	if err := set.Parse(given); err != nil {
		return fmt.Errorf("failed to parse kubelet flag: %w", err)
	}
	if rest := set.Args(); len(rest) > 0 {
		return fmt.Errorf("unknown command %+s", rest[0])
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(config.FeatureGates); err != nil {
		return fmt.Errorf("failed to set feature gates from initial flags-based config: %w", err)
	}
	if err := options.ValidateKubeletFlags(flags); err != nil {
		return fmt.Errorf("failed to validate kubelet flags: %w", err)
	}
	return nil
}

// override lets flags override the configuration. Feature gates are merged.
func override(config *kubeletconfig.KubeletConfiguration, given []string) error {
	if len(given) == 0 {
		return nil
	}
	gates := config.FeatureGates
	if err := commandLine(options.NewKubeletFlags(), config).Parse(given); err != nil {
		return fmt.Errorf("failed to precedence kubeletConfigFlag: %w", err)
	}
	for name, on := range gates {
		if _, named := config.FeatureGates[name]; !named {
			config.FeatureGates[name] = on
		}
	}
	return nil
}

// printFlagsAndExit prints the flags of the kubelet's command line. flags.py turns them into a
// column of the reference's table.
func printFlagsAndExit() {
	names := []string{}
	commandLine(options.NewKubeletFlags(), &kubeletconfig.KubeletConfiguration{}).VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
	})
	printAndExit("flags", names)
}
