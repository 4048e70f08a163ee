package main

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write golden files instead of comparing them")

// The program under test is the test's own binary under another name.
func TestMain(m *testing.M) {
	// Under the race detector, each process would sleep for a second at its end.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(m, map[string]func(){
		"vmop-cli": func() {
			os.Exit(Main(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
		},
	})
}
