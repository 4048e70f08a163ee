package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/spec"
)

func selectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "only objects of this `NAMESPACE`; one that names none is in " + defaultNamespace},
		&cli.StringFlag{Name: "name", Usage: "only objects of this `NAME`"},
	}
}

// selection is the value of selectFlags; empty selects everything.
type selection struct {
	namespace, name string
	// plain: machines stay as they are for a cluster, which has classes of its own.
	plain bool
	// here reports whether a machine is for this host, where it has disks of its own instead of
	// those of a cluster. If nil, none is.
	here func(*spec.Object) (bool, error)
}

func selected(c *cli.Context) selection {
	return selection{namespace: c.String("namespace"), name: c.String("name")}
}

func (s selection) matches(namespace, name string) bool {
	return (s.namespace == "" || s.namespace == namespaceOr(namespace)) && (s.name == "" || s.name == name)
}

func (s selection) String() string {
	var parts []string
	if s.namespace != "" {
		parts = append(parts, "in namespace "+s.namespace)
	}
	if s.name != "" {
		parts = append(parts, "named "+s.name)
	}
	return strings.Join(parts, " ")
}

func namespaceOr(namespace string) string {
	if namespace == "" {
		return defaultNamespace
	}
	return namespace
}

const defaultNamespace = "default"
