package qemucmd

import (
	"encoding/json"
	"strings"

	"github.com/vmop/sdk/internal/shellwords"
)

// Args returns the arguments of QEMU, without the executable.
func (c Command) Args() []string {
	n := 0
	for _, g := range c.Groups {
		n += 2 * len(g.Options)
	}
	args := make([]string, 0, n)
	for _, g := range c.Groups {
		for _, o := range g.Options {
			args = append(args, o.Args()...)
		}
	}
	return args
}

// Group returns the options of a group, nil if the command does not have it. The result must not be
// modified.
func (c Command) Group(name string) []Option {
	for _, g := range c.Groups {
		if g.Name == name {
			return g.Options
		}
	}
	return nil
}

// MarshalJSON encodes the executable, its arguments and what must exist before it runs.
func (c Command) MarshalJSON() ([]byte, error) {
	type plain Command // without this method
	return json.Marshal(struct {
		Executable string   `json:"executable"`
		Args       []string `json:"args"`
		plain
	}{c.Executable, c.Args(), plain(c)})
}

// Shell returns the command as text for a POSIX shell: one option per line, every argument quoted
// where needed. It is for display; nothing in this module starts a shell.
func (c Command) Shell() string {
	var b strings.Builder
	if strings.Contains(c.Executable, "=") {
		// A first word with an equals sign would be an assignment.
		b.WriteString("command ")
	}
	b.WriteString(shellwords.Join(c.Executable))
	for _, g := range c.Groups {
		for _, o := range g.Options {
			b.WriteString(" \\\n ")
			for _, a := range o.Args() {
				b.WriteByte(' ')
				b.WriteString(shellwords.Quote(a))
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}
