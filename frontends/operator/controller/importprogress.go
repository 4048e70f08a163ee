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

// importProgress asks pods that make disks how far they are. They have no rights to the
// API by which they could say so, and the operator has none to their logs. Nobody waits
// for an answer: what is known is that of the question before. What a pod answers is
// anybody's word, and is shown.
type importProgress struct {
	ask func(ctx context.Context, address string) (runnerconfig.ImportProgress, error)
	now func() time.Time

	mu    sync.Mutex
	known map[types.UID]*knownProgress
	// asks are the questions that wait for an answer, until life ends.
	asks sync.WaitGroup
	life context.Context
	end  context.CancelFunc
}

// knownProgress is what one pod has said.
type knownProgress struct {
	said   *runnerconfig.ImportProgress
	at     time.Time // of the last question
	asking bool
}

const (
	// progressPause is how often a pod is asked, and progressPatience how long it may take
	// to answer.
	progressPause    = 5 * time.Second
	progressPatience = 3 * time.Second
	// progressKept is how long a pod is remembered that nobody asks for.
	progressKept = 10 * time.Minute
	// maxAsked is how many are asked at a time.
	maxAsked = 16
)

func newImportProgress(now func() time.Time) *importProgress {
	life, end := context.WithCancel(context.Background())
	return &importProgress{ask: askProgress(), now: now, known: map[types.UID]*knownProgress{}, life: life, end: end}
}

// Start implements controller-runtime's Runnable: when the operator ends, nobody is asked
// any more, and no question is left behind.
func (a *importProgress) Start(ctx context.Context) error {
	<-ctx.Done()
	a.mu.Lock()
	a.end()
	a.mu.Unlock()
	a.asks.Wait()
	return nil
}

// of is how far a pod is, as far as it is known, nil if it is not; and the pod is asked.
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

// learn asks one pod.
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

// askProgress asks over HTTP, directly, and goes nowhere else.
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
