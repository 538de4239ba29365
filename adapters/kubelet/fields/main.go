// Prints every field of the types that users write for a kubelet: its configuration, pods, and
// workloads with pod templates. The modules are those of one release, selected with -modfile.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

var roots = []any{
	kubelet.KubeletConfiguration{}, core.Pod{}, core.PodTemplate{}, core.ReplicationController{},
	apps.Deployment{}, apps.StatefulSet{}, apps.DaemonSet{}, apps.ReplicaSet{}, batch.Job{}, batch.CronJob{},
}

// Types that decode themselves, such as quantities, have no fields that a document could name.
var unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

type printer struct {
	types map[string]map[string]string
	seen  map[string]reflect.Type
}

func main() {
	found := printer{map[string]map[string]string{}, map[string]reflect.Type{}}
	for _, root := range roots {
		found.name(reflect.TypeOf(root))
	}
	printed := map[string]any{"kubernetes": release(), "types": found.types}
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		panic(err)
	}
}

// release returns the Kubernetes release of the types: k8s.io/api v0.37.1 belongs to 1.37.
func release() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			return "1." + strings.Split(module.Version, ".")[1]
		}
	}
	panic("built without k8s.io/api")
}

// name returns the name of a type in the table, after adding its fields and those of the types it
// refers to.
func (p *printer) name(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.name(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + p.name(t.Elem())
	case reflect.Map:
		return "map[]" + p.name(t.Elem())
	case reflect.Struct:
		if other, found := p.seen[t.Name()]; !found {
			p.seen[t.Name()] = t
			p.types[t.Name()] = map[string]string{}
			p.add(t.Name(), t)
		} else if other != t {
			panic(fmt.Sprintf("two types %s: %v and %v", t.Name(), other.PkgPath(), t.PkgPath()))
		}
		return t.Name()
	}
	return t.Kind().String()
}

func (p *printer) add(owner string, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			p.add(owner, field.Type)
		default:
			p.types[owner][name] = p.name(field.Type)
		}
	}
}
