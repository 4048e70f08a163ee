package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func Example() {
	p, err := Start(Command{Name: "hello", Path: "/bin/echo", Args: []string{"hello"}, Dir: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Stop()
	<-p.Done()
	fmt.Println(p.Tail(), p.Ended())
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(Command{Name: "a", Path: "/bin/sh", Args: []string{"-c", "echo $WORD; pwd; exec sleep 1000"}, Dir: dir, Env: []string{"WORD=wide"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.PID() <= 0 {
		t.Errorf("process id %d", p.PID())
	}
	p.Stop()
	p.Stop()
	if got := p.Ended().Error(); got != "signal: killed" {
		t.Errorf("it ended with %q", got)
	}
	if _, err := Start(Command{Name: "b", Path: filepath.Join(dir, "none"), Dir: dir}); err == nil {
		t.Error("a missing program started")
	}
}

func TestLogTailIsShortAndWholeLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("a line of a log\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	tail := LogTail(file)
	if len(tail) > 8<<10 || !strings.HasPrefix(tail, "a line") || !strings.HasSuffix(tail, "of a log") {
		t.Errorf("%d bytes: %.20q", len(tail), tail)
	}
}
