package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type operator struct {
	cmd     *exec.Cmd
	metrics string
	done    chan struct{}
}

func startOperator(ctx context.Context, program, kubeconfig, log string) (*operator, error) {
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	probes, err := freeAddress()
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	o := &operator{metrics: metrics, done: make(chan struct{})}
	o.cmd = exec.Command(program, "--kubeconfig="+kubeconfig, "--health-probe-bind-address="+probes, "--metrics-bind-address="+metrics,
		"--leader-elect", "--leader-election-namespace=default")
	o.cmd.Stdout, o.cmd.Stderr = out, out
	if err := o.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = o.cmd.Wait(); close(o.done) }()
	for {
		if _, err := fetch("http://" + probes + "/readyz"); err == nil {
			return o, nil
		}
		select {
		case <-o.done:
			return nil, fmt.Errorf("the operator ended; see %s", log)
		case <-ctx.Done():
			o.stop()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (o *operator) stop() {
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	<-o.done
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// plain requests uncompressed answers: compression would distort the measurement.
var plain = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func fetch(address string) (string, error) {
	resp, err := plain.Get(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

type counts struct {
	// requests are those sent except for the lease, which is all that it updates, and for watches,
	// of which there are few.
	requests float64
	waiting  float64
}

// counts reads the metrics; as long as the operator does not answer, it does not count as quiet.
func (o *operator) counts() counts {
	text, err := fetch("http://" + o.metrics + "/metrics")
	if err != nil {
		return counts{waiting: 1}
	}
	var out counts
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "rest_client_requests_total{") && !strings.Contains(line, `method="PUT"`):
			out.requests += value(line)
		case strings.HasPrefix(line, `workqueue_depth{controller="machines"`), strings.HasPrefix(line, `controller_runtime_active_workers{controller="machines"`):
			out.waiting += value(line)
		}
	}
	return out
}

func value(line string) float64 {
	f := strings.Fields(line)
	v, _ := strconv.ParseFloat(f[len(f)-1], 64)
	return v
}

type usage struct{ cpu, rss, peak float64 } // seconds, MiB

func usageOf(pid int) (u usage) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if i := strings.LastIndex(string(stat), ")"); i > 0 {
		f := strings.Fields(string(stat)[i+1:])
		user, _ := strconv.ParseFloat(f[11], 64)
		system, _ := strconv.ParseFloat(f[12], 64)
		u.cpu = (user + system) / 100 // the clock ticks of every Linux that Go runs on
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			u.rss = kib / 1024
		case "VmHWM:":
			u.peak = kib / 1024
		}
	}
	return u
}

func childNamed(program string) int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		stat, _ := os.ReadFile(d + "/stat")
		text := string(stat)
		i, j := strings.Index(text, "("), strings.LastIndex(text, ")")
		if i < 0 || j < i || !strings.HasPrefix(program, text[i+1:j]) {
			continue
		}
		if f := strings.Fields(text[j+1:]); f[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(d))
			return pid
		}
	}
	return 0
}

type moment struct {
	at               time.Time
	operator, server usage
	requests         float64
}

func (l *load) now() moment {
	return moment{time.Now(), usageOf(l.operator.cmd.Process.Pid), usageOf(childNamed("kube-apiserver")), l.operator.counts().requests}
}

// quiet waits until nothing is left to do and the operator has sent nothing for five seconds, and
// returns when that began. It polls rarely, so as not to add load.
func (l *load) quiet(ctx context.Context, done func() bool) (time.Time, error) {
	last, since := l.operator.counts().requests, time.Now()
	for {
		select {
		case <-ctx.Done():
			return since, ctx.Err()
		case <-l.operator.done:
			return since, fmt.Errorf("the operator ended; see %s", l.log)
		case <-time.After(500 * time.Millisecond):
		}
		if n := l.operator.counts(); n.requests != last || !done() || n.waiting > 0 {
			last, since = n.requests, time.Now()
		}
		if time.Since(since) >= 5*time.Second {
			return since, nil
		}
	}
}

// served returns the numbers of requests that the API server has answered, by verb and resource:
// the operator's, and those of the stand-in.
func (l *load) served(ctx context.Context) map[string]float64 {
	out := map[string]float64{}
	text, err := l.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		name := label(line, "verb") + " " + label(line, "resource")
		if sub := label(line, "subresource"); sub != "" {
			name += "/" + sub
		}
		out[name+" "+label(line, "code")] += value(line)
	}
	return out
}

func label(line, name string) string {
	_, rest, _ := strings.Cut(line, name+`="`)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

func breakdown(a, b map[string]float64, n int) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if each := (b[name] - a[name]) / float64(n); each >= 0.02 {
			fmt.Printf("%36.2f  %s\n", each, name)
		}
	}
}
