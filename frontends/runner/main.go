// Command vmop-runner runs one virtual machine from a runner configuration: in a
// pod, where it is the first process, or alone.
package main

import (
	"os"
)

func main() {
	os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
}
