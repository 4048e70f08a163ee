package runner

import (
	"os"
	"path/filepath"
	"testing"
)

// Who fails before it has a machine for itself does not write that it has stopped: it
// may be another's, and run.
func TestStateFileOfAnotherEngine(t *testing.T) {
	d := testDirs(t)
	if err := makeDataDir(d.Data); err != nil {
		t.Fatal(err)
	}
	lock, err := Lock(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	states := &StateFile{Path: filepath.Join(d.Data, "state.json")}
	states.State(State{Phase: PhaseBooting})
	before, err := os.ReadFile(states.Path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(filepath.Dir(d.Runtime), "file"), "no directory")
	d.Runtime = filepath.Join(filepath.Dir(d.Runtime), "file")
	e, err := New(Options{Config: testConfig(t), Host: testHost(t), Directories: d, Reporter: states, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context()); err == nil {
		t.Fatal("it ran")
	}
	if after, err := os.ReadFile(states.Path); err != nil || string(after) != string(before) {
		t.Errorf("the state is now %s, %v", after, err)
	}
}
