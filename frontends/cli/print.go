package main

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/output"
)

func printList[T any, P interface {
	*T
	output.Object
}](p *program, format string, items []T) error {
	return write(p.stdout, format, output.ListOf[T, P](items))
}

func (p *program) printOne(format string, object output.Object) error {
	return write(p.stdout, format, output.One(object))
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// known returns nil for 0 bytes, which means unknown.
func known(n int64) *resource.Quantity {
	if n == 0 {
		return nil
	}
	return output.Bytes(n)
}

// rate is in bytes per second.
func rate(n float64) *resource.Quantity { return output.Bytes(int64(math.Round(n))) }
