package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/spec"
)

const completeName = "__complete"

// completeCommand prints the completions of its last argument, a line each: the word, a tab, a
// description. A single line ":files" asks the shell for files.
func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name:            completeName,
		Usage:           "tell the shell how a command line can go on",
		Hidden:          true,
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			done := completer{app: c.App, machines: func(command *cli.Command, words []string) []string { return p.namesFor(c, command, words) }, disks: func(command *cli.Command, words []string) []string { return p.disksFor(c, command, words) }, images: func() []completion { return p.imageNames(c) }}.complete(c.Args().Slice())
			for _, w := range done.words {
				fmt.Fprintln(p.stdout, strings.TrimRight(w.word+"\t"+w.about, "\t"))
			}
			if done.files {
				fmt.Fprintln(p.stdout, ":files")
			}
			return nil
		},
	}
}

// machineNames returns the names of this host's machines as a user would type them: without the
// namespace if the name is unique. Errors are not shown during completion.
func (p *program) machineNames(c *cli.Context) []string {
	h, err := p.host(c)
	if err != nil {
		return nil
	}
	machines, err := h.List(host.ListOptions{})
	if err != nil {
		return nil
	}
	count := map[string]int{}
	for _, m := range machines {
		count[m.Name]++
	}
	var out []string
	for _, m := range machines {
		if count[m.Name] > 1 {
			out = append(out, host.FullName(m.Namespace, m.Name))
		} else {
			out = append(out, m.Name)
		}
	}
	return out
}

func (p *program) namesFor(c *cli.Context, command *cli.Command, words []string) []string {
	o := chosenCluster(command, words)
	if o == nil {
		return p.machineNames(c)
	}
	client, err := cluster.Connect(*o)
	if err != nil {
		return nil
	}
	// A shell that waits long for names is worse than one without them.
	ctx, cancel := bounded(c, completionTimeout, "the API server did not answer")
	defer cancel()
	var out []string
	if command.Name == "disk" && !slices.Contains(words, "attach") && !slices.Contains(words, "detach") {
		disks, _ := client.Disks(ctx, client.Namespace)
		for _, d := range disks {
			out = append(out, d.Name)
		}
		return out
	}
	machines, _ := client.Machines(ctx, client.Namespace)
	for _, vm := range machines {
		out = append(out, vm.Name)
	}
	return out
}

// disksFor returns the names of disks for a command that already names a machine: the machine's on
// this host, in a cluster those that can be attached to or detached from it. Errors are not shown
// during completion.
func (p *program) disksFor(c *cli.Context, command *cli.Command, words []string) []string {
	args := operandsOf(command, words)
	if command.Name != "disk" || len(args) != 2 {
		return nil
	}
	action, machine := args[0], args[1]
	ctx, cancel := bounded(c, completionTimeout, "the answer takes too long")
	defer cancel()
	var out []string
	o := chosenCluster(command, words)
	if o == nil {
		if action != "resize" && action != "detach" {
			return nil // the others take a new name, or none
		}
		h, err := p.host(c)
		if err != nil {
			return nil
		}
		m, err := h.Find(machine, "")
		if err != nil {
			return nil
		}
		disks, _ := h.Disks(ctx, m)
		for _, d := range disks {
			out = append(out, d.Name)
		}
		return out
	}
	client, err := cluster.Connect(*o)
	if err != nil || action != "attach" && action != "detach" {
		return nil
	}
	namespace, name, given := strings.Cut(machine, "/")
	if !given {
		namespace, name = client.Namespace, machine
	}
	if action == "detach" {
		attached, _ := client.Attachments(ctx, namespace, name)
		for _, a := range attached {
			if a.Spec.BlockDeviceRef.Kind == spec.AttachedDisk {
				out = append(out, a.Spec.BlockDeviceRef.Name)
			}
		}
		return out
	}
	disks, _ := client.Disks(ctx, namespace)
	for _, d := range disks {
		out = append(out, d.Name)
	}
	return out
}

const completionTimeout = 3 * time.Second

// chosenCluster returns the cluster that a command refers to, nil for this host. Some commands are
// for clusters only.
func chosenCluster(command *cli.Command, words []string) *cluster.Options {
	o, in := &cluster.Options{}, slices.ContainsFunc(command.Flags, func(f cli.Flag) bool {
		v, ok := f.(cli.VisibleFlag)
		return ok && f.Names()[0] == "cluster" && !v.IsVisible()
	})
	for i, w := range words {
		name, value, given := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if !strings.HasPrefix(w, "-") || i > 0 && takesValue(command, words[i-1]) {
			continue
		}
		if !given && takesValue(command, w) && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "cluster":
			in = true
		case "context":
			o.Context, in = value, true
		case "kubeconfig":
			o.Kubeconfig, in = value, true
		case "namespace", "n":
			o.Namespace = value
		}
	}
	if !in {
		return nil
	}
	return o
}

func (p *program) imageNames(c *cli.Context) []completion {
	var out []completion
	if h, err := p.host(c); err == nil {
		all, _ := h.Images() // errors are not shown during completion
		for _, i := range all {
			for _, s := range i.Sources {
				out = append(out, completion{s, shortDigest(i.Digest)})
			}
		}
	}
	for _, i := range host.PublicImages() {
		out = append(out, completion{word: i.Name})
	}
	return out
}

type completion struct{ word, about string }

// completions may also include all names of files.
type completions struct {
	words []completion
	files bool
}

type completer struct {
	app      *cli.App
	machines func(command *cli.Command, words []string) []string
	// disks is called for a command that names a machine.
	disks  func(command *cli.Command, words []string) []string
	images func() []completion
}

func (r completer) complete(words []string) completions {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	i := slices.IndexFunc(before, func(w string) bool { return !strings.HasPrefix(w, "-") })
	var all completions
	if i < 0 {
		if strings.HasPrefix(last, "-") {
			all.words = flagWords(r.app.Flags)
		} else {
			for _, c := range r.app.Commands {
				if !c.Hidden {
					all.words = append(all.words, completion{c.Name, c.Usage})
				}
			}
		}
		return all.with(last)
	}
	command := r.app.Command(before[i])
	if command == nil || slices.Contains(before[i:], "--") {
		return completions{files: command != nil}
	}
	if n := len(before); n > i+1 && strings.HasPrefix(before[n-1], "-") && takesValue(command, before[n-1]) {
		return flagValues(command, before[n-1]).with(last)
	}
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "-") {
		all = flagValues(command, name).with(value)
		for i := range all.words {
			all.words[i].word = name + "=" + all.words[i].word
		}
		return all
	}
	if strings.HasPrefix(last, "-") {
		return completions{words: flagWords(command.Flags)}.with(last)
	}
	return r.argument(command, before[i+1:]).with(last)
}

// argument returns what may follow the words that a command already has.
func (r completer) argument(command *cli.Command, words []string) completions {
	usage, operands := strings.Fields(command.ArgsUsage), operands(command, words)
	if len(usage) == 0 {
		return completions{}
	}
	several := usage[0] == "NAME..."
	if several {
		usage[0] = "NAME"
	}
	named := 0 // the position of NAME
	if strings.Contains(usage[0], "|") && len(usage[0]) > 1 {
		named = 1
	}
	switch {
	case operands < named:
		var all completions
		for _, word := range strings.Split(usage[0], "|") {
			all.words = append(all.words, completion{word: word})
		}
		return all
	case operands == named && slices.Contains(usage, "NAME"), several && chosenCluster(command, words) != nil:
		all := completions{files: slices.Contains(usage, "FILE") || slices.Contains(usage, "OLD")}
		for _, name := range r.machines(command, words) {
			all.words = append(all.words, completion{word: name})
		}
		return all
	case operands == named+1 && slices.Contains(usage, "[DISK]"):
		var all completions
		for _, name := range r.disks(command, words) {
			all.words = append(all.words, completion{word: name})
		}
		return all
	case operands == named && slices.Contains(usage, "[IMAGE]"):
		return completions{words: r.images()}
	case operands < len(usage) && !slices.Contains(usage, "NAME"), strings.HasSuffix(usage[len(usage)-1], "..."):
		return completions{files: true}
	case operands < len(usage) && usage[operands] == "FILE", operands == 1 && slices.Contains(usage, "OLD"):
		return completions{files: true}
	}
	return completions{}
}

func operands(command *cli.Command, words []string) int { return len(operandsOf(command, words)) }

func operandsOf(command *cli.Command, words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		switch {
		case !strings.HasPrefix(words[i], "-") || words[i] == "-":
			out = append(out, words[i])
		case takesValue(command, words[i]):
			i++
		}
	}
	return out
}

func (c completions) with(prefix string) completions {
	c.words = slices.DeleteFunc(c.words, func(w completion) bool { return !strings.HasPrefix(w.word, prefix) })
	return c
}

func flagWords(flags []cli.Flag) []completion {
	var out []completion
	for _, f := range flags {
		about := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			about = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		for _, name := range f.Names() {
			if len(name) > 1 {
				out = append(out, completion{"--" + name, about})
			}
		}
	}
	return out
}

// flagValues returns the values that a flag's help enumerates, or otherwise files.
func flagValues(command *cli.Command, flag string) completions {
	name := strings.TrimLeft(flag, "-")
	for _, f := range command.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			if values := enumerated(d.GetUsage()); len(values) > 0 {
				var all completions
				for _, v := range values {
					all.words = append(all.words, completion{word: v})
				}
				return all
			}
		}
	}
	return completions{files: true}
}

var (
	enumeration = regexp.MustCompile("^`[A-Z]+`[^:,(]*: ([^:]*)$")
	onlyValue   = regexp.MustCompile("^`[A-Z]+` ([a-z]+): ")
	remark      = regexp.MustCompile(` *\([^)]*\)`)
	value       = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// enumerated parses the values from a flag's help: "`FORMAT`: table or json", or the only one:
// "`FORMAT` yaml: print the manifest".
func enumerated(usage string) []string {
	if m := onlyValue.FindStringSubmatch(usage); m != nil && m[1] != "of" {
		return m[1:]
	}
	m := enumeration.FindStringSubmatch(remark.ReplaceAllString(usage, ""))
	if m == nil {
		return nil
	}
	values := strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", ")
	if len(values) < 2 || slices.ContainsFunc(values, func(v string) bool { return !value.MatchString(v) }) {
		return nil
	}
	return values
}
