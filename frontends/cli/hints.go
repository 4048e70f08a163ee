package main

import (
	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/shellwords"
)

// hint returns the command line of a next step, quoted for a shell, with those of this command's
// flags that say where the machines are. All hints are built by it (TestHints).
func (p *program) hint(c *cli.Context, words ...string) string {
	return shellwords.Join(append(append([]string{"vmop-cli"}, words...), p.where(c)...)...)
}

func (p *program) kubectl(c *cli.Context, words ...string) string {
	return shellwords.Join(append(append([]string{"kubectl"}, whichCluster(c)...), words...)...)
}

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

// whichCluster returns this command's flags that select the cluster, which kubectl has, too.
func whichCluster(c *cli.Context) []string {
	var out []string
	for _, name := range []string{"kubeconfig", "context"} {
		if c.IsSet(name) {
			out = append(out, "--"+name, c.String(name))
		}
	}
	return out
}
