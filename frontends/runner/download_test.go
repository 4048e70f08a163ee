package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/transfer"
)

// freePort is a port of the loopback interface that nobody has.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// The pod gives what is in the file until somebody has it, says so at its end, and lets
// no QEMU write to the file meanwhile.
func TestGiveDownload(t *testing.T) {
	keys, _ := keyIn(t)
	own, err := tunnel.LoadIdentity(filepath.Join(keys, "tls.crt"), filepath.Join(keys, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	data := append(bytes.Repeat([]byte("disk"), 1000), make([]byte, 3<<20)...)
	image, last := filepath.Join(t.TempDir(), "disk.img"), filepath.Join(t.TempDir(), "last words")
	if err := os.WriteFile(image, data, 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	ended := make(chan int, 1)
	var out bytes.Buffer
	go func() {
		ended <- giveDownload([]string{"-image=" + image, "-format=raw", "-certificates=" + keys, "-port=" + strconv.Itoa(port), "-termination-log=" + last}, &out, &out)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := &transfer.Client{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Own: own}
	t.Cleanup(client.Close)
	for { // until it listens
		if _, err := client.Offer(ctx); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if said, err := exec.CommandContext(ctx, "qemu-io", "-f", "raw", "-c", "write 0 512", image).CombinedOutput(); err == nil || !strings.Contains(string(said), "lock") {
		t.Errorf("a QEMU writes to it: %v %s", err, said)
	}
	if said, err := exec.CommandContext(ctx, "qemu-io", "-r", "-f", "raw", "-c", "read 0 512", image).CombinedOutput(); err != nil {
		t.Errorf("none reads it: %v %s", err, said)
	}
	to, err := os.OpenFile(filepath.Join(t.TempDir(), "got"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	d, err := client.Download(ctx, to, func(int64, int64) {})
	if err != nil || d.Format != "raw" {
		t.Errorf("%+v, %v", d, err)
	}
	if got, err := os.ReadFile(to.Name()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := client.Done(ctx); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 {
		t.Errorf("%d: %s", code, out.String())
	}
	if words, err := os.ReadFile(last); err != nil || runnerconfig.ParseImported(string(words)).Error != "" {
		t.Errorf("%s, %v", words, err)
	}
}

// What nobody downloads, or a machine writes to, is told in the last words.
func TestNoDownload(t *testing.T) {
	keys, _ := keyIn(t)
	dir := t.TempDir()
	image := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	give := func(more ...string) (int, string) {
		t.Helper()
		last := filepath.Join(t.TempDir(), "last words")
		var out bytes.Buffer
		code := giveDownload(append([]string{"-image=" + image, "-format=raw", "-certificates=" + keys, "-port=" + strconv.Itoa(freePort(t)), "-termination-log=" + last, "-wait=100ms"}, more...), &out, &out)
		data, err := os.ReadFile(last)
		if err != nil && code != 2 {
			t.Errorf("%v: %s", err, out.String())
		}
		return code, string(data) + out.String()
	}
	if code, said := give(); code == 0 || !strings.Contains(said, "nobody has come within 100ms who has taken all of it") {
		t.Errorf("%d: %s", code, said)
	}
	for _, wrong := range [][]string{{"-format=vdi"}, {"-wait=0s"}, {"more"}, {"-image="}} {
		if code, said := give(wrong...); code != 2 {
			t.Errorf("%q: %d: %s", wrong, code, said)
		}
	}
	if code, said := give("-image=" + dir); code == 0 || !strings.Contains(said, "neither a file nor a block device") {
		t.Errorf("%d: %s", code, said)
	}

	// A QEMU that has the file open to write.
	writer := exec.CommandContext(t.Context(), "qemu-io", "-f", "raw", image)
	in, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("write 0 512\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := said.Read(make([]byte, 1)); err != nil { // it has written
		t.Fatal(err)
	}
	if code, said := give(); code == 0 || !strings.Contains(said, "a machine on this node writes to it") {
		t.Errorf("%d: %s", code, said)
	}
	_ = in.Close()
	_ = writer.Wait()
}
