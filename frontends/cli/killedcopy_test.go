package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/host"
)

const (
	// killedDisk is the size of the disk that is copied, in bytes: so much that somebody
	// can be killed meanwhile.
	killedDisk = 256 << 20
	// killedFrom is from where on the guest of the test writes nothing.
	killedFrom = 1 << 20
)

// randomDiskCommand makes the disk: random-disk FILE.
func randomDiskCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: random-disk FILE")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), killedDisk)
	ts.Check(errors.Join(err, f.Close()))
}

// killCopiesCommand makes copies of a machine that runs and kills who takes part in them,
// at drawn moments: kill-copies ROUNDS. However it goes, the machine's disk is what it was,
// what is listed is whole, and the next copy is made.
func killCopiesCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill-copies ROUNDS")
	}
	rounds, err := strconv.Atoi(args[0])
	ts.Check(err)
	k := &copyKiller{TestScript: ts, data: filepath.Join(ts.Getenv("VMOP_DATA_DIR"), "machines", "lab")}
	k.h, err = host.Open(host.Options{DataDir: ts.Getenv("VMOP_DATA_DIR"), Getenv: ts.Getenv})
	ts.Check(err)
	k.want = k.sum(filepath.Join(k.data, "keeper", "data-disk.img"))
	seed := uint64(time.Now().UnixNano())
	ts.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	victims := []string{"cli", "runner", "qemu"}
	for i := range rounds {
		// Each of them with a snapshot and with a clone, and then what comes.
		victim, clone := victims[i%3], i/3%2 == 1
		name, when := "c"+strconv.Itoa(i), draw.Int64N(killedDisk)
		// A command that is killed leaves something, unless it was faster.
		for k.round(name, victim, clone, when) && victim == "cli" {
			name, when = name+"a", when/2
		}
	}
}

type copyKiller struct {
	*testscript.TestScript
	h    *host.Host
	data string // the directory of the machines
	want [sha256.Size]byte
}

// sum is that of what the guest does not write to.
func (k *copyKiller) sum(path string) (out [sha256.Size]byte) {
	f, err := os.Open(path)
	k.Check(err)
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.NewSectionReader(f, killedFrom, killedDisk))
	k.Check(err)
	if n != killedDisk-killedFrom {
		k.Fatalf("%s has %d bytes", path, n+killedFrom)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func (k *copyKiller) machine(name string) host.Machine {
	m, err := k.h.Machine("lab", name)
	k.Check(err)
	return m
}

// copied is what a copy that is being made has on its storage.
func (k *copyKiller) copied() (n int64) {
	for _, pattern := range []string{"keeper/snapshots/.new-*/data-disk.img", ".clone-*/data-disk.img"} {
		found, err := filepath.Glob(filepath.Join(k.data, pattern))
		k.Check(err)
		for _, path := range found {
			if info, err := os.Stat(path); err == nil {
				n += filecopy.Allocated(info)
			}
		}
	}
	return n
}

// round makes a copy and kills the victim when so much of it is there. It reports whether the
// copy was made all the same.
func (k *copyKiller) round(name, victim string, clone bool, when int64) (there bool) {
	k.Check(k.Exec("vmop-cli", "start", "keeper"))
	guest := guestConsole(k.TestScript, "lab/keeper")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.Check(guest.WaitReady(ctx))
	k.Check(guest.Close())
	m := k.machine("keeper")
	args := []string{"snapshot", "create", "keeper", name}
	if clone {
		args = []string{"clone", "keeper", name}
	}
	before := k.copied() // of rounds before
	cmd := exec.CommandContext(ctx, filepath.Join(strings.Split(k.Getenv("PATH"), ":")[0], "vmop-cli"), args...)
	cmd.Env = append(os.Environ(), "VMOP_DATA_DIR="+k.Getenv("VMOP_DATA_DIR"), "XDG_RUNTIME_DIR="+k.Getenv("XDG_RUNTIME_DIR"), "HOME="+k.Getenv("HOME"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	k.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	ended := false
	for !ended && k.copied()-before < when {
		select {
		case err = <-done:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	if !ended {
		pid := map[string]int{"cli": cmd.Process.Pid, "runner": m.Runner, "qemu": m.QEMU}[victim]
		k.Check(syscall.Kill(pid, syscall.SIGKILL))
		err = <-done
	}
	k.Logf("%s: killed the %s at %d of %d bytes (copied before: %v): %v %s", strings.Join(args, " "), victim, when, int64(killedDisk), ended, err, &said)
	killed := victim == "cli" && !ended

	// What is there is whole, and is there if its maker said so.
	image := filepath.Join(k.data, "keeper", "snapshots", name, "data-disk.img")
	snapshot, serr := m.Snapshot(name)
	there = serr == nil
	if clone {
		image = filepath.Join(k.data, name, "data-disk.img")
		_, cerr := k.h.Machine("lab", name)
		there = cerr == nil
	}
	switch {
	case ended && err != nil:
		k.Fatalf("%s: nobody was killed, and there is none: %v\n%s", name, err, &said)
	case !killed && there != (err == nil):
		k.Fatalf("%s: it is there: %v, and its maker said %v", name, there, err)
	case !killed && err != nil && said.Len() == 0:
		k.Fatalf("%s: nobody is told why there is none", name)
	case there && k.sum(image) != k.want, there && !clone && len(snapshot.Disks) != 1:
		k.Fatalf("%s is listed and is not whole", name)
	}
	k.Check(k.Exec("vmop-cli", "snapshot", "list", "keeper"))
	if listed := strings.Contains(k.ReadFile("stdout"), name+" "); listed != (there && !clone) {
		k.Fatalf("%s is listed: %v", name, listed)
	}

	// The machine runs on if none of its own was killed, or has ended and says so.
	if victim == "cli" || ended {
		if now := k.machine("keeper"); now.Status == host.StatusPaused {
			k.Check(k.Exec("vmop-cli", "resume", "keeper")) // it was the last moment
		} else if now.Status != host.StatusRunning {
			k.Fatalf("the machine is %s (%s)", now.Status, now.Message())
		}
	} else {
		now, werr := k.h.Wait(ctx, m, host.ForStopped)
		k.Check(werr)
		if now.Status == host.StatusStopped || now.Status == host.StatusRunning || now.Message() == "" {
			k.Fatalf("the machine is %q: %q", now.Status, now.Message())
		}
		if k.sum(filepath.Join(k.data, "keeper", "data-disk.img")) != k.want {
			k.Fatalf("the machine's disk is another one")
		}
	}
	// Room for the next one.
	if there && clone {
		k.Check(k.Exec("vmop-cli", "delete", name, "--disks", "--yes"))
	} else if there {
		k.Check(k.Exec("vmop-cli", "snapshot", "delete", "keeper", name))
	}
	return there
}

// interruptedCopyCommand leaves a machine that does not run as a copy of its disk does that
// was killed while the guest wrote to an overlay: interrupted-copy NAMESPACE/NAME IMAGE.
func interruptedCopyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: interrupted-copy NAMESPACE/NAME IMAGE")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	data := filepath.Join(ts.Getenv("VMOP_DATA_DIR"), "machines", filepath.FromSlash(args[0]))
	image := ts.MkAbs(args[1])
	info, err := os.Stat(image)
	ts.Check(err)
	d := overlay.Disk{Name: "disk", Image: overlay.ImageIn(data, image), Format: "raw", Overlay: "0.qcow2"}
	h, err := overlay.Begin(ctx, data, []overlay.Disk{d})
	ts.Check(err)
	ts.Check(h.Make(ctx, d, info.Size()))
	ts.Check(h.Still())
	ts.Check(h.Write(overlay.Attached))
	ts.Check(h.Close())
}

// agedCommand makes what was interrupted as old as it must be to be taken for abandoned:
// aged GLOB.
func agedCommand(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	then := time.Now().Add(-time.Hour)
	for _, path := range found {
		ts.Check(os.Chtimes(path, then, then))
	}
}
