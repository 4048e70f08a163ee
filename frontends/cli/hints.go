package main

import (
	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/shellwords"
)

// hint is the command line of a next step, as a shell takes it, with the flags that this
// command was given and the next one needs, too: those that say where the machines are. It is
// the only place that makes one (TestHints).
func (p *program) hint(c *cli.Context, words ...string) string {
	return shellwords.Join(append(append([]string{"vmop-cli"}, words...), p.where(c)...)...)
}

// kubectl is the command line of a next step that kubectl does, for the cluster that this
// command was about.
func (p *program) kubectl(c *cli.Context, words ...string) string {
	return shellwords.Join(append(append([]string{"kubectl"}, whichCluster(c)...), words...)...)
}

// where are the flags that say where machines are, as this command was given them.
func (p *program) where(c *cli.Context) []string {
	if inCluster(c) {
		if flags := whichCluster(c); len(flags) > 0 {
			return flags
		}
		return []string{"--cluster"}
	}
	if dir := c.String("data-dir"); dir != "" && dir != p.getenv("VMOP_DATA_DIR") {
		return []string{"--data-dir", dir}
	}
	return nil
}

// whichCluster are the flags that say which cluster is meant, as this command was given them.
// kubectl has the same.
func whichCluster(c *cli.Context) []string {
	var out []string
	for _, name := range []string{"kubeconfig", "context"} {
		if c.IsSet(name) {
			out = append(out, "--"+name, c.String(name))
		}
	}
	return out
}
