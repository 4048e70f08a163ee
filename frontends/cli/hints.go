package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// hint is the command line of a next step, with the flags that this command was given and
// the next one needs, too: those that say where the machines are. It is the only place that
// makes one (TestHints).
func (p *program) hint(c *cli.Context, words ...string) string {
	return strings.Join(append(append([]string{"vmop-cli"}, words...), p.where(c)...), " ")
}

// where are the flags that say where machines are, as this command was given them.
func (p *program) where(c *cli.Context) []string {
	var out []string
	add := func(flag, value string) { out = append(out, flag, shellWord(value)) }
	if inCluster(c) {
		if c.IsSet("kubeconfig") {
			add("--kubeconfig", c.String("kubeconfig"))
		}
		if c.IsSet("context") {
			add("--context", c.String("context"))
		}
		if len(out) == 0 {
			out = append(out, "--cluster")
		}
		return out
	}
	if dir := c.String("data-dir"); dir != "" && dir != p.getenv("VMOP_DATA_DIR") {
		add("--data-dir", dir)
	}
	return out
}
