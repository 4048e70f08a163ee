package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/frontends/runner/kubernetes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// lastWords limits the time for reporting the end of the machine. The pod has
// reconcile.TerminationReserve for it and for the end of QEMU.
const lastWords = 10 * time.Second

// reportToCluster reports to the Kubernetes API if the runner is in a pod with access to it;
// otherwise the reporter is nil. A machine runs unreported, too, so failures are only warnings.
func reportToCluster(c *runnerconfig.Config, log runner.Reporter) (r *kubernetes.Reporter, end func()) {
	none := func() {}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, none
	}
	if err != nil {
		warn(log, fmt.Sprintf("the Kubernetes API is not told about the machine: %v", err))
		return nil, none
	}
	namespace := c.Runner.Namespace
	if data, err := os.ReadFile(ownNamespace); err == nil {
		namespace = strings.TrimSpace(string(data))
	}
	if namespace == "" {
		warn(log, "the Kubernetes API is not told about the machine: the pod does not know its namespace")
		return nil, none
	}
	config.UserAgent = "vmop-runner/" + version()
	config.WarningHandler = &warningLog{log: log, told: map[string]bool{}}
	client, err := kubernetes.NewClient(config, namespace, c.Runner.VM.Name)
	if err != nil {
		warn(log, fmt.Sprintf("the Kubernetes API is not told about the machine: %v", err))
		return nil, none
	}
	r = kubernetes.NewReporter(client, func(level runner.Level, text string) {
		log.Message(runner.Message{Time: time.Now(), Level: level, Source: "runner", Text: text})
	})
	return r, func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			warn(log, err.Error())
		}
	}
}

// warningLog logs each warning of the API server once: with definitions older than the runner, it
// warns at every report.
type warningLog struct {
	log  runner.Reporter
	mu   sync.Mutex
	told map[string]bool
}

// HandleWarningHeader implements [rest.WarningHandler].
func (w *warningLog) HandleWarningHeader(code int, _ string, text string) {
	w.mu.Lock()
	news := !w.told[text]
	w.told[text] = true
	w.mu.Unlock()
	if code == 299 && text != "" && news {
		warn(w.log, "the Kubernetes API warns: "+text)
	}
}
