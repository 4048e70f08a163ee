package imageinspect_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmop/sdk/vmop/imageinspect"
)

func ExampleInspect() {
	report, err := imageinspect.Inspect(context.Background(), "disk.qcow2")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Format, report.VirtualSize)
	if report.PartitionTable != nil {
		for _, p := range report.PartitionTable.Partitions {
			fmt.Println(p.Index, p.Type, p.Size)
		}
	}
}

func ExampleProbeFormat() {
	header := make([]byte, imageinspect.HeaderSize)
	copy(header, "conectix")
	_, _, err := imageinspect.ProbeFormat(header, 1<<20)
	fmt.Println(errors.Is(err, imageinspect.ErrUnsupportedFormat))
	fmt.Println(err)

	format, size, err := imageinspect.ProbeFormat(make([]byte, imageinspect.HeaderSize), 1<<20)
	fmt.Println(format, size, err)
	// Output:
	// true
	// unsupported image format: vpc: convert it to qcow2 with qemu-img
	// raw 1048576 <nil>
}
