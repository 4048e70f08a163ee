package main

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

type finding struct {
	spec.Problem
	severity output.Severity
}

// String returns the line to print.
func (f finding) String() string {
	if f.severity != output.SeverityError {
		f.Message = string(f.severity) + ": " + f.Message
	}
	return f.Problem.String()
}

func asFindings(severity output.Severity, problems ...spec.Problem) []finding {
	out := make([]finding, len(problems))
	for i, f := range problems {
		out[i] = finding{f, severity}
	}
	return out
}

func wrong(findings []finding) bool {
	return slices.ContainsFunc(findings, func(f finding) bool { return f.severity == output.SeverityError })
}

// ordered moves errors to the end, where a user of long output sees them.
func ordered(findings []finding) []finding {
	rank := map[output.Severity]int{output.SeverityNote: 0, output.SeverityWarning: 1, output.SeverityError: 2}
	return slices.SortedStableFunc(slices.Values(findings), func(a, b finding) int { return cmp.Compare(rank[a.severity], rank[b.severity]) })
}

func (p *program) report(findings []finding) {
	for _, f := range ordered(findings) {
		fmt.Fprintln(p.stderr, f)
	}
}

func printedManifestFindings(findings []finding) []output.ManifestFinding {
	out := make([]output.ManifestFinding, len(findings))
	for i, f := range ordered(findings) {
		out[i] = output.ManifestFinding{Path: f.File, Line: f.Line, Severity: f.severity, Message: f.Message}
		if f.Kind != "" {
			out[i].InvolvedObject = &corev1.ObjectReference{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, FieldPath: f.Path}
		}
	}
	return out
}
