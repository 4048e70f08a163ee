package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Whoever asks is told how far a disk is while it is made, and nothing else.
func TestImportTellsItsProgress(t *testing.T) {
	half, go1 := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(2<<20))
		_, _ = w.Write(bytes.Repeat([]byte{1}, 1<<20))
		http.NewResponseController(w).Flush() //nolint:errcheck // the client sees it
		close(half)
		<-go1
		_, _ = w.Write(bytes.Repeat([]byte{1}, 1<<20))
	}))
	t.Cleanup(server.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	job := runnerconfig.Import{Disk: "u1", File: filepath.Join(dir, "disk.img"), Size: 2 << 20, ProgressPort: port, Image: &runnerconfig.DriveImage{Source: server.URL + "/a.img"}}
	text, err := job.Encode()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	var out bytes.Buffer
	go func() { ended <- importDisk(text, filepath.Join(dir, "last words"), &out, &out) }()
	<-half
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	ask := func(method, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, body := ask(http.MethodGet, runnerconfig.ImportProgressPath)
		got, err := runnerconfig.ParseImportProgress([]byte(body))
		if err == nil && got == (runnerconfig.ImportProgress{Step: "downloading", Done: 1 << 20, Total: 2 << 20}) && got.Percent() == 35 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %+v, %v", body, got, err)
		}
	}
	for _, c := range [][2]string{{http.MethodPost, runnerconfig.ImportProgressPath}, {http.MethodGet, "/"}, {http.MethodGet, runnerconfig.ImportProgressPath + "/x"}} {
		if code, body := ask(c[0], c[1]); code != http.StatusNotFound {
			t.Errorf("%v: %d, %s", c, code, body)
		}
	}
	close(go1)
	if code := <-ended; code != 0 {
		t.Fatalf("%d: %s", code, out.String())
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		c.Close()
		t.Error("it answers after its end")
	}
}

// A port that is taken is no reason to make no disk.
func TestImportWithoutItsPort(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	text, err := (runnerconfig.Import{Disk: "u1", File: filepath.Join(dir, "disk.img"), Size: 4096, ProgressPort: l.Addr().(*net.TCPAddr).Port}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := importDisk(text, filepath.Join(dir, "last words"), &out, &out); code != 0 || !strings.Contains(out.String(), "nobody is told how far it is") {
		t.Errorf("%d: %s", code, out.String())
	}
}
