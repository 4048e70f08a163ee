package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/vmop/sdk/internal/together"
)

var update = flag.Bool("update", false, "write golden files instead of comparing them")

// The program under test is the test's own binary under another name.
func TestMain(m *testing.M) {
	together.Tests()
	// Under the race detector, each process would sleep for a second at its end.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(m, map[string]func(){
		"vmop-cli": func() {
			if !forProgramsAsked(os.Args[1:]) {
				os.Exit(checkedExit(Main(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr)))
			}
			// What is printed for programs is as the schema says.
			var printed bytes.Buffer
			code := Main(context.Background(), os.Args, os.Stdin, io.MultiWriter(os.Stdout, &printed), os.Stderr)
			if problem := checked(os.Args[1:], printed.Bytes()); problem != "" && !slices.Contains(os.Args, "render") {
				fmt.Fprintf(os.Stderr, "the output does not fit the schema: %s\n", problem)
				code = 98
			}
			os.Exit(checkedExit(code))
		},
	})
}

// checkedExit is an exit code, or another one if the table of exit codes does not have it.
func checkedExit(code int) int {
	if args := os.Args[1:]; (len(args) == 0 || args[0] != superviseName) && code != 98 && !documentedExit(args, code) {
		fmt.Fprintf(os.Stderr, "no documentation has the exit code %d of %q\n", code, args)
		return 97
	}
	return code
}
