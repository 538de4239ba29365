package main

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/klog/v2"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	loggerType  = reflect.TypeFor[klog.Logger]()
)

// addOperation is the kubelet's name for the admission of a new pod.
const addOperation = "add"

// invoke calls a function of the kubelet. With each release, more of these functions take a
// context, a logger or an operation. invoke supplies them to parameters of these types, so that a
// single call works with all releases. It panics if the other parameters don't accept the arguments
// in order.
func invoke(function any, arguments ...any) []reflect.Value {
	f := reflect.ValueOf(function)
	parameters := make([]reflect.Value, f.Type().NumIn())
	for i := range parameters {
		kind := f.Type().In(i)
		parameter := reflect.New(kind).Elem()
		switch {
		case kind == contextType:
			parameter.Set(reflect.ValueOf(context.Background()))
		case kind == loggerType:
			parameter.Set(reflect.ValueOf(klog.Background()))
		case kind.String() == "lifecycle.Operation": // a type that releases before 1.36 lack
			parameter.SetString(addOperation)
		case len(arguments) == 0:
			panic(fmt.Sprintf("no argument for parameter %d of %s", i, f.Type()))
		default:
			if arguments[0] != nil {
				parameter.Set(reflect.ValueOf(arguments[0]))
			}
			arguments = arguments[1:]
		}
		parameters[i] = parameter
	}
	if len(arguments) > 0 {
		panic(fmt.Sprintf("%s takes fewer arguments: %d are left", f.Type(), len(arguments)))
	}
	return f.Call(parameters)
}

// call is invoke for functions with one result.
func call[A any](function any, arguments ...any) (a A) {
	results := invoke(function, arguments...)
	reflect.ValueOf(&a).Elem().Set(results[0])
	return a
}

// call2 is invoke for functions with two results.
func call2[A, B any](function any, arguments ...any) (a A, b B) {
	results := invoke(function, arguments...)
	reflect.ValueOf(&a).Elem().Set(results[0])
	reflect.ValueOf(&b).Elem().Set(results[1])
	return a, b
}
