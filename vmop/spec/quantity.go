package spec

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bytes returns a quantity of memory or storage as a number of bytes. A
// fraction of a byte is rounded up, as everywhere in Kubernetes; [Validate]
// refuses such quantities.
func Bytes(q resource.Quantity) int64 {
	return q.Value()
}
