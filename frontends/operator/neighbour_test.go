package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A namespace with a few machines does not wait for one with many, whose machines
// besides change all the time and ask for what no machine can have.
func TestGoodNamespaceBesideAHostileOne(tt *testing.T) {
	good, bad := newTest(tt), newTest(tt)
	const few, many = 10, 150
	monster := strings.Replace(machine("monster", "Running"), "maximumRam: 1Gi", `maximumRam: "1e200000000"`, 1)
	if _, err := bad.vms.Create(tt.Context(), bad.object(monster), metav1.CreateOptions{}); err != nil {
		tt.Logf("the API server refuses it: %v", err) // as it should
	}
	var creators sync.WaitGroup
	for c := range 4 {
		creators.Go(func() {
			for i := c; i < many; i += 4 {
				if _, err := bad.vms.Create(tt.Context(), bad.object(machine(fmt.Sprintf("bad-%03d", i), "Running")), metav1.CreateOptions{}); err != nil {
					tt.Error(err)
				}
			}
		})
	}
	creators.Wait()
	for i := range few {
		good.create(machine(fmt.Sprintf("good-%d", i), "Running"))
	}
	ctx, end := context.WithCancel(tt.Context())
	var flapping sync.WaitGroup
	defer flapping.Wait()
	defer end()
	for f := range 2 {
		flapping.Go(func() {
			for i := f; ctx.Err() == nil; i++ {
				patch := fmt.Sprintf(`{"status":{"osinfo":{"id":"flap-%d"},"consoleUser":"user-%d"}}`, i, i)
				_, _ = bad.vms.Patch(ctx, fmt.Sprintf("bad-%03d", i%many), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			}
		})
	}
	// made are the versions at which the pods of a namespace were made; nobody
	// changes them here. They tell what was first, however late it is looked.
	made := func(t *test) []uint64 {
		list, err := t.kube.CoreV1().Pods(t.namespace).List(tt.Context(), metav1.ListOptions{})
		if err != nil {
			tt.Fatal(err)
		}
		var at []uint64
		for _, pod := range list.Items {
			version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
			if err != nil {
				tt.Fatal(err)
			}
			at = append(at, version)
		}
		return at
	}
	// Both namespaces are there from the beginning, the bad one with the lead of
	// fifteen times as many.
	o := good.start(cluster.Kubeconfig(), "--namespace="+bad.namespace)
	good.eventually("the good machines have their pods", func() error {
		if n := len(made(good)); n < few {
			return fmt.Errorf("%d of %d", n, few)
		}
		return nil
	})
	last := slices.Max(made(good))
	n := 0
	for _, at := range made(bad) {
		if at < last {
			n++
		}
	}
	tt.Logf("%d pods of the other namespace are there when the last of the good one is", n)
	if n > many/2 {
		tt.Errorf("the good machines had to wait for %d of the others", n)
	}
	if _, err := fetch("http://" + o.probes + "/healthz"); err != nil {
		tt.Error(err)
	}
	bad.eventually("the others have their pods in the end", func() error {
		if n := len(made(bad)); n < many {
			return fmt.Errorf("%d of %d", n, many)
		}
		return nil
	})
}
