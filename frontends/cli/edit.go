package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) editCommand() *cli.Command {
	return &cli.Command{
		Name:      "edit",
		Usage:     "change the manifest of a machine of this host in an editor",
		ArgsUsage: "NAME",
		Description: "Opens the manifest that is kept with the machine in $VISUAL, $EDITOR or vi, and then\n" +
			"does what apply does. A manifest with mistakes changes nothing and is kept in a file\n" +
			"that is told.\n\n" +
			"Example:\n" +
			"  vmop-cli edit hello",
		Flags:  machineFlags(),
		Action: p.edit,
	}
}

func (p *program) edit(c *cli.Context) error {
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(m.ManifestFile())
	if errors.Is(err, os.ErrNotExist) {
		err = host.ErrNoManifest
	}
	if err != nil {
		return fmt.Errorf("edit %s: %w", m.FullName(), err)
	}
	dir, err := os.MkdirTemp("", "vmop-edit-")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, m.Name+".yaml")
	if err := os.WriteFile(file, before, 0o600); err != nil {
		return err
	}
	if err := p.editor(c, file); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	after, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		p.note("Nothing was changed.")
		return os.RemoveAll(dir)
	}
	if err := p.applyEdited(c, m, file); err != nil {
		p.note("What you wrote is in %s; apply it with %s.", file, p.hint(c, "apply", file))
		return err
	}
	return os.RemoveAll(dir)
}

func (p *program) applyEdited(c *cli.Context, m host.Machine, file string) error {
	objects, err := p.machinesAmong([]string{file}, selection{})
	if err != nil {
		return err
	}
	var found []spec.Object
	for _, o := range objects {
		if o.Name == m.Name && namespaceOr(o.Namespace) == m.Namespace {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%s: want the VirtualMachine %s, whose name and namespace cannot be changed so", file, m.FullName())
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	return p.applyTo(c, h, m, &found[0], host.Given{})
}

func (p *program) editor(c *cli.Context, file string) error {
	editor := p.getenv("VISUAL")
	if editor == "" {
		editor = p.getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	words := strings.Fields(editor) // it may have arguments
	if len(words) == 0 {
		return fmt.Errorf("$EDITOR %q names no program", editor)
	}
	cmd := exec.CommandContext(c.Context, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", editor, err)
	}
	return nil
}
