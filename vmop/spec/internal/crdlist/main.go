// Command crdlist writes the list of a directory of generated resource definitions,
// for kustomize: a file for each kind of the group.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/vmop/spec"
)

const head = `# The definitions alone; definitions/ is what people install. The name of this file
# keeps kubectl apply -f from taking it for a resource. It is generated: make generate.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdlist DIRECTORY")
		os.Exit(2)
	}
	if err := os.WriteFile(filepath.Join(os.Args[1], "Kustomization"), []byte(list()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "crdlist:", err)
		os.Exit(1)
	}
}

func list() string {
	var lines []string
	for _, k := range spec.Kinds() {
		lines = append(lines, "- "+spec.GroupName+"_"+k.Plural+".yaml\n")
	}
	slices.Sort(lines)
	text := head
	for _, line := range lines {
		text += line
	}
	return text
}
