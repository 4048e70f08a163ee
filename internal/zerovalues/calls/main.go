// Command calls is built and run by the test of package zerovalues: it calls functions
// and methods with nil and zero values, and says which of them panic or do not return.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile"
)

type named struct {
	name  string
	value any
}

// library is the prefix of the library's functions in a stack.
const library = "github.com/vmop/sdk/vmop"

// made are types whose values must be created by a function of their package, as documented: a zero
// value is useless.
var made = map[string]string{
	"vmop/reconcile/objects.PassedOn": "of a pod that is there",
	"vmop/runner.Engine":              "New",
	"vmop/host.Engine":                "Job.Engine",
	"vmop/qmp.Client":                 "Dial, New",
	"vmop/qmp.Subscription":           "Client.Subscribe",
	"vmop/qga.Client":                 "Dial, New",
	"vmop/qmp/goqemu.Monitor":         "New",
	"vmop/reconcile.Apply":            "decisions",
	"vmop/reconcile.Create":           "decisions",
	"vmop/spec.AddToScheme":           "runtime.NewScheme",
}

// observed are the packages whose functions take objects that an operator has read, with their
// defaults: a nil pointer means an object that does not exist where documented, and is the caller's
// bug elsewhere.
var observed = []string{"vmop/reconcile.", "vmop/reconcile/objects.", "vmop/reconcile/machine."}

const patience = 60 * time.Second

// moment is the lifetime of the context in calls with one that has not ended: what waits for
// something that never comes waits for that long.
const moment = 20 * time.Millisecond

func main() {
	c := caller{given: stubs()}
	ended, end := context.WithCancel(context.Background())
	end() // nothing is waited for
	c.contexts = []func() (context.Context, context.CancelFunc){
		func() (context.Context, context.CancelFunc) { return ended, func() {} },
		func() (context.Context, context.CancelFunc) { return context.WithTimeout(context.Background(), moment) },
	}
	c.context = c.contexts[0]
	for _, f := range functions {
		if made[f.name] != "" || slices.ContainsFunc(observed, func(p string) bool { return strings.HasPrefix(f.name, p) }) {
			continue
		}
		c.call(f.name, reflect.ValueOf(f.value))
	}
	for _, v := range values {
		if made[v.name] != "" {
			continue
		}
		t := reflect.TypeOf(v.value)
		for i := range t.NumMethod() {
			if name := t.Method(i).Name; name == "DeepCopyInto" || promoted(t.Elem(), name) {
				continue // generated; not ours, or of a value that is nil
			}
			// Each has a value of its own: one method may have closed what another waits for.
			c.call(v.name+"."+t.Method(i).Name, reflect.New(t.Elem()).Method(i))
		}
	}
	fmt.Printf("%d calls, %d faults\n", c.calls, c.faults)
	if c.faults > 0 {
		os.Exit(1)
	}
}

// promoted reports whether a method is that of an embedded field.
func promoted(t reflect.Type, method string) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			if _, ok := f.Type.MethodByName(method); ok {
				return true
			}
			if _, ok := reflect.PointerTo(f.Type).MethodByName(method); ok {
				return true
			}
		}
	}
	return false
}

type caller struct {
	given map[reflect.Type]reflect.Value
	// contexts are those that functions are called with, context the present one.
	contexts      []func() (context.Context, context.CancelFunc)
	context       func() (context.Context, context.CancelFunc)
	calls, faults int
}

// call calls a function with each combination of nil and pointers to zero values, each with a
// context that has ended and with one that has not: functions that check their context first reach
// their arguments only then.
func (c *caller) call(name string, f reflect.Value) {
	t := f.Type()
	for i := range t.NumIn() {
		if t.In(i) != reflect.TypeFor[context.Context]() {
			continue
		}
		for _, c.context = range c.contexts {
			c.mixtures(name, f)
		}
		return
	}
	c.mixtures(name, f)
}

func (c *caller) mixtures(name string, f reflect.Value) {
	t := f.Type()
	var pointers []int
	for i := range t.NumIn() {
		if t.In(i).Kind() == reflect.Pointer {
			pointers = append(pointers, i)
		}
	}
	for mixture := range 1 << min(len(pointers), 4) {
		ctx, cancel := c.context()
		c.given[reflect.TypeFor[context.Context]()] = reflect.ValueOf(ctx)
		args := make([]reflect.Value, t.NumIn())
		var said []string
		for i := range args {
			args[i] = c.zero(t.In(i))
		}
		for bit, i := range pointers {
			if mixture>>bit&1 == 1 {
				args[i] = reflect.New(t.In(i).Elem())
			}
		}
		for i := range args {
			said = append(said, describe(args[i]))
		}
		c.calls++
		fault := try(f, args)
		cancel()
		if fault != "" {
			c.faults++
			fmt.Printf("%s(%s): %s\n", name, strings.Join(said, ", "), fault)
		}
	}
}

func describe(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "nil"
	case v.Kind() == reflect.Pointer:
		return "new(" + v.Type().Elem().String() + ")"
	}
	return "zero " + v.Type().String()
}

// zero returns the zero value of a type, or for an interface or a function one that does nothing.
func (c *caller) zero(t reflect.Type) reflect.Value {
	if v, ok := c.given[t]; ok {
		return v
	}
	if t.Kind() == reflect.Func {
		return reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
			out := make([]reflect.Value, t.NumOut())
			for i := range out {
				out[i] = reflect.Zero(t.Out(i))
			}
			return out
		})
	}
	return reflect.Zero(t)
}

// stubs are values of the interfaces for which callers always pass something.
func stubs() map[reflect.Type]reflect.Value {
	here, there := net.Pipe()
	_ = there.Close()
	_ = here.Close()
	return map[reflect.Type]reflect.Value{
		reflect.TypeFor[io.Writer]():        reflect.ValueOf(io.Discard),
		reflect.TypeFor[io.Reader]():        reflect.ValueOf(strings.NewReader("")),
		reflect.TypeFor[io.ReaderAt]():      reflect.ValueOf(strings.NewReader("")),
		reflect.TypeFor[net.Conn]():         reflect.ValueOf(here),
		reflect.TypeFor[net.Listener]():     reflect.ValueOf(closed{}),
		reflect.TypeFor[metav1.Object]():    reflect.ValueOf(&corev1.ConfigMap{}),
		reflect.TypeFor[reconcile.Object](): reflect.ValueOf(&corev1.ConfigMap{}),
		reflect.TypeFor[error]():            reflect.ValueOf(errors.New("an error")),
	}
}

type closed struct{}

func (closed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closed) Close() error              { return nil }
func (closed) Addr() net.Addr            { return &net.UnixAddr{} }

func try(f reflect.Value, args []reflect.Value) (fault string) {
	done := make(chan string, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Sprintf("panics: %v (%s)", r, place(debug.Stack()))
			}
		}()
		if f.Type().IsVariadic() {
			f.CallSlice(args)
		} else {
			f.Call(args)
		}
		done <- ""
	}()
	select {
	case fault := <-done:
		return fault
	case <-time.After(patience):
		return "does not return"
	}
}

func place(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, library) {
			file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
			return filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file)
		}
	}
	return "elsewhere"
}
