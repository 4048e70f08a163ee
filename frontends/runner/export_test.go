package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runner"
)

// What is missing on the command line of an exporter is named.
func TestExportArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "-disk is missing",
		"-disk=/d":                            "-certificates is missing",
		"-disk=/d -certificates=/c -client=f": "-runtime is missing",
		"-disk=/d -certificates=/c -client=f -runtime=/r more":             `unexpected argument "more"`,
		"-disk=/d -certificates=/c -client=f -runtime=/r -log-format=xml":  "want text or json",
		"-disk=/d -certificates=/c -client=f -runtime=/r -linger=sometime": "linger",
	} {
		var errs bytes.Buffer
		if code := Main(append([]string{"export"}, strings.Fields(args)...), io.Discard, &errs); code != runner.ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: %d, %s", args, code, &errs)
		}
	}
	var errs bytes.Buffer
	if code := Main([]string{"export", "-disk=/d", "-certificates=" + t.TempDir(), "-client=f", "-runtime=" + t.TempDir()}, io.Discard, &errs); code != runner.ExitStart || !strings.Contains(errs.String(), "tls.crt") {
		t.Errorf("%d, %s", code, &errs)
	}
}
