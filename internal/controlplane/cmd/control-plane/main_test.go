package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildPrintsTheFolder(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"--build"}, &out, os.Stderr); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(out.String()), "kubectl")); err != nil {
		t.Error(err)
	}
}

// What is printed is for a shell; an interruption ends it without a trace.
func TestControlPlaneRunsUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, nil, in, os.Stderr)
		_ = in.CloseWithError(io.EOF) // of a start that failed
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
	if err != nil || !ok {
		interrupt()
		t.Fatalf("got %q, %v; the end is %v", line, err, <-ended)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Error(err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}

func TestUnknownFlagIsAnError(t *testing.T) {
	if err := run(t.Context(), []string{"--nonsense"}, io.Discard, io.Discard); err == nil {
		t.Error("no error")
	}
}
