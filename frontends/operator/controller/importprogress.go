package controller

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// importProgress asks the pods that fill disks for their progress: they have no access to the API
// to report it, and the operator has none to their logs. Calls do not block: the result is that of
// the previous query. The answers are not trustworthy, and are only displayed.
type importProgress struct {
	ask func(ctx context.Context, address string) (runnerconfig.ImportProgress, error)
	now func() time.Time

	mu    sync.Mutex
	known map[types.UID]*knownProgress
	// asks are the pending queries; life ends them.
	asks sync.WaitGroup
	life context.Context
	end  context.CancelFunc
}

type knownProgress struct {
	said   *runnerconfig.ImportProgress
	at     time.Time // of the last query
	asking bool
}

const (
	// progressPause is the interval at which a pod is asked, progressPatience the timeout of a
	// query.
	progressPause    = 5 * time.Second
	progressPatience = 3 * time.Second
	// progressKept is how long the progress of a pod is kept that is no longer queried.
	progressKept = 10 * time.Minute
	maxAsked     = 16
)

func newImportProgress(now func() time.Time) *importProgress {
	life, end := context.WithCancel(context.Background())
	return &importProgress{ask: askProgress(), now: now, known: map[types.UID]*knownProgress{}, life: life, end: end}
}

// Start implements controller-runtime's Runnable. When the operator ends, it waits for pending
// queries to end.
func (a *importProgress) Start(ctx context.Context) error {
	<-ctx.Done()
	a.mu.Lock()
	a.end()
	a.mu.Unlock()
	a.asks.Wait()
	return nil
}

// of returns the known progress of a pod, or nil, and queries the pod.
func (a *importProgress) of(pod *corev1.Pod) *runnerconfig.ImportProgress {
	if pod == nil || pod.Status.Phase != corev1.PodRunning || net.ParseIP(pod.Status.PodIP) == nil {
		return nil
	}
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.known[pod.UID]
	if k == nil {
		k = &knownProgress{}
	}
	asked := 0
	for uid, other := range a.known {
		if other.asking {
			asked++
		} else if other != k && now.Sub(other.at) > progressKept {
			delete(a.known, uid)
		}
	}
	if !k.asking && now.Sub(k.at) >= progressPause && asked < maxAsked && a.life.Err() == nil {
		k.at, k.asking, a.known[pod.UID] = now, true, k
		address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(runnerconfig.ImportProgressPort))
		a.asks.Go(func() { a.learn(k, address) })
	}
	return k.said
}

func (a *importProgress) learn(k *knownProgress, address string) {
	ctx, cancel := context.WithTimeout(a.life, progressPatience)
	defer cancel()
	said, err := a.ask(ctx, address)
	a.mu.Lock()
	defer a.mu.Unlock()
	k.asking = false
	if err == nil {
		k.said = &said
	}
}

func askProgress() func(ctx context.Context, address string) (runnerconfig.ImportProgress, error) {
	c := &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 4 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, address string) (out runnerconfig.ImportProgress, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+runnerconfig.ImportProgressPath, http.NoBody)
		if err != nil {
			return out, err
		}
		answer, err := c.Do(r)
		if err != nil {
			return out, err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return out, fmt.Errorf("%s answers %s", address, answer.Status)
		}
		data, err := io.ReadAll(io.LimitReader(answer.Body, runnerconfig.MaxImportProgress+1))
		if err != nil {
			return out, err
		}
		return runnerconfig.ParseImportProgress(data)
	}
}
