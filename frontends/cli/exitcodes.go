package main

import (
	"fmt"
	"slices"
	"strings"
)

type exitCode struct {
	// code is its name in help and documents, from and to are the numeric range.
	code     string
	from, to int
	// of are the commands to which it applies, with words of their command lines; empty means all.
	of      []string
	meaning string
}

func oneExit(code int, meaning string, of ...string) exitCode {
	return exitCode{code: fmt.Sprint(code), from: code, to: code, of: of, meaning: meaning}
}

// exitCodes are the exit codes of this program. Help texts and docs/one-host.md are generated from
// them (TestExitCodes).
func exitCodes() []exitCode {
	return []exitCode{
		oneExit(exitOK, "done"),
		oneExit(exitOK, "the machine has ended, however it did, or somebody has seen enough (Ctrl-C)", "logs --follow"),
		oneExit(exitError, "failed"),
		oneExit(exitError, "something would change", "diff"),
		oneExit(exitError, "something has to be done before", "takeover"),
		oneExit(exitError, "no machine can run on this host, or that could not be found out", "doctor"),
		oneExit(exitError, "something is wrong with a manifest, or there is none", "validate"),
		oneExit(exitError, "it has not come about in time, or cannot any more", "wait"),
		oneExit(exitUsage, "wrong usage"),
		oneExit(exitForced, "stopped without the guest's consent; its disks are as after a power cut", "run", "start", "stop", "restart"),
		oneExit(exitDiffError, "an error", "diff"),
		oneExit(exitTakeoverError, "an error", "takeover"),
		oneExit(exitFailure, "failed while running", "run", "start"),
		{"the CODE of `--stopped-exit`", 1, exitNoByte, []string{"start --foreground --stopped-exit"}, "asked to stop, and has"},
		{"that of the command", 1, exitNoByte, []string{"ssh", "guest exec"}, "the command in the guest has ended so; 255 if its code is larger"},
		oneExit(exitNoProgram, "the guest has no such program", "guest exec"),
		{"128 + N", exitSignal + 1, exitNoByte - 1, []string{"guest exec", "ssh", "scp"}, "the signal N has ended it"},
		{"that of scp", 1, exitNoByte - 1, []string{"scp"}, "scp has failed so"},
		oneExit(exitNoByte, "no connection", "ssh", "scp"),
	}
}

// holds reports whether a row applies to a command line without the program's name.
func (e exitCode) holds(args []string) bool {
	return len(e.of) == 0 || slices.ContainsFunc(e.of, func(of string) bool { return isOf(of, args) })
}

// isOf reports whether a command line matches one of a row: the command first, and the other words
// anywhere.
func isOf(of string, args []string) bool {
	words := strings.Fields(of)
	if len(args) == 0 || args[0] != words[0] {
		return false
	}
	for _, word := range words[1:] {
		if !slices.ContainsFunc(args[1:], func(a string) bool {
			return a == word || strings.HasPrefix(a, word+"=") || word == "--follow" && a == "-f"
		}) {
			return false
		}
	}
	return true
}

func documentedExit(args []string, code int) bool {
	return slices.ContainsFunc(exitCodes(), func(e exitCode) bool { return e.from <= code && code <= e.to && e.holds(args) })
}

// exitCodesOf returns the lines of a command's help about its own codes, "" if there are none. The
// program's help has all codes.
func exitCodesOf(command string) string {
	type line struct{ code, meaning string }
	var lines []line
	own := false
	for _, e := range exitCodes() {
		meaning, about := e.meaning, len(e.of) == 0
		for _, of := range e.of {
			name, rest, _ := strings.Cut(of, " ")
			if name == command {
				about, own = true, true
				if rest != "" {
					meaning += " (" + rest + ")"
				}
			}
		}
		if command == "" && len(e.of) > 0 {
			about, own = true, true
			meaning = strings.Join(e.of, ", ") + ": " + meaning
		}
		if about {
			lines = append(lines, line{strings.ReplaceAll(e.code, "`", ""), meaning})
		}
	}
	if !own {
		return ""
	}
	width := 0
	for _, l := range lines {
		width = max(width, len(l.code))
	}
	out := "Exit codes:\n"
	for _, l := range lines {
		out += fmt.Sprintf("  %-*s  %s\n", width, l.code, l.meaning)
	}
	return out
}

func withExitCodes(command, description string) string {
	codes := exitCodesOf(command)
	if codes == "" {
		return description
	}
	text, examples, found := strings.Cut(description, "\n\nExample")
	text = strings.TrimRight(text, "\n") + "\n\n" + strings.TrimRight(codes, "\n")
	if found {
		text += "\n\nExample" + examples
	}
	return text
}
