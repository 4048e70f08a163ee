package main

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/output"
)

// printList prints objects as JSON or YAML.
func printList[T any, P interface {
	*T
	output.Object
}](p *program, format string, items []T) error {
	return write(p.stdout, format, output.ListOf[T, P](items))
}

// printOne prints one object as JSON or YAML.
func (p *program) printOne(format string, object output.Object) error {
	return write(p.stdout, format, output.One(object))
}

// named is the metadata of something that is called so.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// known is a number of bytes that is missing where it is 0: nobody knows it then.
func known(n int64) *resource.Quantity {
	if n == 0 {
		return nil
	}
	return output.Bytes(n)
}

// rate is a number of bytes in a second.
func rate(n float64) *resource.Quantity { return output.Bytes(int64(math.Round(n))) }
