package main

import (
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/vmop/sdk/internal/editdistance"
)

// The groups of commands in the help, in this order.
const (
	manifestCommands = "1. Manifests"
	hostCommands     = "2. Machines of this host"
	eitherCommands   = "3. Machines of this host, or with --cluster those of a cluster"
	clusterCommands  = "4. Machines of a cluster"
	otherCommands    = "5. Other"
)

var categories = map[string]string{
	"validate": manifestCommands, "render": manifestCommands, "changes": manifestCommands, "convert": manifestCommands,

	"run": hostCommands, "create": hostCommands, "apply": hostCommands, "edit": hostCommands,
	"rename": hostCommands, "clone": hostCommands, "snapshot": hostCommands, "image": hostCommands, "enable": hostCommands, "disable": hostCommands, "top": hostCommands,
	"ssh": hostCommands, "scp": hostCommands, "ssh-config": hostCommands,
	"delete": hostCommands, "wait": hostCommands, "console": hostCommands, "pause": hostCommands, "resume": hostCommands,
	"nmi": hostCommands, "screenshot": hostCommands, "guest": hostCommands,

	"list": eitherCommands, "describe": eitherCommands, "inspect": eitherCommands, "start": eitherCommands, "stop": eitherCommands, "restart": eitherCommands, "disk": eitherCommands,
	"reset": eitherCommands, "spice": eitherCommands, "vnc": eitherCommands, "logs": eitherCommands, "events": eitherCommands,

	"console-password": clusterCommands, "expose": clusterCommands, "diff": clusterCommands, "leftovers": clusterCommands, "takeover": clusterCommands,

	"doctor": otherCommands, "version": otherCommands, "completion": otherCommands,
}

// destructive are commands that must not be suggested for a typo.
var destructive = map[string]bool{"delete": true, "reset": true, "nmi": true, "stop": true, "restart": true}

// destructiveActions are the same for actions of other commands.
var destructiveActions = map[string]bool{"snapshot restore": true, "snapshot delete": true, "disk detach": true}

// destructiveFlags are flags that lose data or suppress a confirmation.
var destructiveFlags = map[string]bool{
	"disks": true, "now": true, "force": true, "yes": true, "discard": true, "new-disk": true, "in-place": true, "all": true,
}

func commandNames(app *cli.App) []string {
	var out []string
	for _, c := range app.Commands {
		if !c.Hidden && !destructive[c.Name] {
			out = append(out, c.Names()...)
		}
	}
	return out
}

func flagNames(c *cli.Command) []string {
	var out []string
	if c == nil {
		return nil
	}
	for _, f := range c.Flags {
		for _, name := range f.Names() {
			if len(name) > 1 && !destructiveFlags[name] {
				out = append(out, name)
			}
		}
	}
	return out
}

// nearest returns the word that was probably meant: one typo away, two in a long word, or the only
// one with that prefix; "" if there is none, or more than one.
func nearest(word string, known []string) string {
	limit := 1
	if len(word) >= 7 {
		limit = 2
	}
	best, found := limit+1, ""
	for _, k := range known {
		switch d := editdistance.Between(word, k); {
		case d < best:
			best, found = d, k
		case d == best:
			found = ""
		}
	}
	switch {
	case len(word) < 3:
		return ""
	case best <= limit:
		return found
	}
	return onlyLonger(word, known)
}

// onlyLonger returns the one word that begins with another; "" if there is none, or more than one.
func onlyLonger(word string, known []string) string {
	found := ""
	for _, k := range known {
		if strings.HasPrefix(k, word) {
			if found != "" {
				return ""
			}
			found = k
		}
	}
	return found
}
