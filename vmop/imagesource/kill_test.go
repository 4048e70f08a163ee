package imagesource

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
)

// fetchEnv makes the test's binary a program that fetches what it says.
const fetchEnv = "VMOP_TEST_FETCH"

func TestMain(m *testing.M) {
	if job := os.Getenv(fetchEnv); job != "" {
		from, to, _ := strings.Cut(job, "\n")
		if _, err := Fetch(context.Background(), Source{Location: from}, to, Options{Local: LocalAllowed}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What is killed in the middle leaves no image, and the next fetch goes on.
func TestKilled(t *testing.T) {
	disk := diskOf(syncStep + 4<<20)
	half := make(chan struct{})
	gone := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	var ranges []string
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ranges = append(ranges, r.Header.Get("Range"))
		mu.Unlock()
		w.Header().Set("ETag", `"v1"`)
		first := false
		once.Do(func() { first = true })
		if !first {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(disk))
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(disk)))
		_, _ = w.Write(disk[:syncStep+1<<20])
		w.(http.Flusher).Flush()
		close(half)
		<-gone
	}))
	dir := t.TempDir()
	to := filepath.Join(dir, "image")
	cmd := testbin.Self(context.Background(), t, fetchEnv+"="+url+"\n"+to)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	record := to + ".part.json"
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if _, err := os.Stat(record); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was written down")
		}
		time.Sleep(10 * time.Millisecond)
	}
	<-half
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	close(gone)
	if _, err := os.Stat(to); err == nil {
		t.Fatal("there is an image")
	}
	if _, err := Fetch(t.Context(), Source{Location: url}, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, disk) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	mu.Lock()
	defer mu.Unlock()
	if last := ranges[len(ranges)-1]; !strings.HasPrefix(last, "bytes="+strconv.Itoa(syncStep)[:2]) {
		t.Errorf("%q", ranges)
	}
	if names := files(t, dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}
