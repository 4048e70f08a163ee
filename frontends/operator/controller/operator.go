package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/internal/applytext"
	"github.com/vmop/sdk/vmop/spec"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	stopTimeout      = 20 * time.Second
	definitionsPause = time.Second
)

// Operator looks after the machines of a cluster.
type Operator struct {
	options Options
	config  *rest.Config
	server  *apiServer
	leading *leading
	gate    *gate

	kinds []registration

	mu sync.Mutex
	// forget is called before each term in which this operator leads.
	forget []func()
	// waits is what the operator waits for before it is ready; empty when it is.
	waits string
}

// New returns an operator. It makes no request before it is started.
func New(config *rest.Config, o Options) (*Operator, error) {
	if len(o.Namespaces) > 0 && len(o.Without) > 0 {
		return nil, errors.New("namespaces to look after and namespaces to leave out exclude each other")
	}
	config = rest.CopyConfig(config)
	// Compression would cost the API server a tenth of its time in large lists.
	config.DisableCompression = true
	if config.QPS > 0 && config.RateLimiter == nil {
		// Every kind has its own client, which would have a limit of its own.
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	s, err := newAPIServer(config, o.Log)
	if err != nil {
		return nil, fmt.Errorf("how to connect to the cluster: %w", err)
	}
	config.Wrap(applytext.Wrap)
	if o.WrapTransport != nil {
		config.Wrap(o.WrapTransport)
	}
	config.Wrap(s.observing)
	slow, err := newSlowCounter(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	out := &Operator{options: o, config: config, server: s, kinds: registrations(), waits: "it is not started"}
	out.leading = newLeading(o.LeaderElection == nil, func() {
		out.mu.Lock()
		defer out.mu.Unlock()
		for _, forget := range out.forget {
			forget()
		}
	})
	out.gate = newGate(out.leading, s, slow)
	out.gate.quiet = o.Quiet
	return out, nil
}

// Logs returns the process-wide loggers for controller-runtime and for client-go: they suppress
// failures that are due to an unreachable API server.
func (o *Operator) Logs() (controllers, clients logr.Logger) {
	return o.server.quiet(o.options.Log, false), o.server.quiet(o.options.Log.WithName("client"), true)
}

// Start looks after the machines until the context ends. It waits for an unreachable API server and
// for the resource definitions; losing the lease does not end it.
func (o *Operator) Start(ctx context.Context) error {
	// Everything around the manager lives longer: the lease is released only when nothing is
	// written any more.
	outer, end := context.WithCancel(context.WithoutCancel(ctx))
	var around sync.WaitGroup
	defer around.Wait()
	defer end()
	defer o.server.wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o.server.start(ctx)
	if err := o.serveProbes(outer, &around); err != nil {
		return err
	}
	m, err := o.manager(ctx)
	if m == nil {
		return err
	}
	if e := o.options.LeaderElection; e != nil {
		run, err := newElection(o.config, *e, o.leading, o.server, o.options.Log)
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		around.Go(func() {
			if err := run.run(outer); err != nil {
				o.options.Log.Error(err, "this operator cannot lead")
			}
		})
	}
	around.Go(func() {
		if m.GetCache().WaitForCacheSync(ctx) {
			o.waitFor("")
		}
	})
	return m.Start(ctx)
}

func (o *Operator) waitFor(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = what
}

// manager builds the manager once the cluster has what it needs. It is nil if the context ended
// before.
func (o *Operator) manager(ctx context.Context) (manager.Manager, error) {
	told := ""
	for ctx.Err() == nil {
		o.waitFor("the API server cannot be reached")
		if o.server.reachable(ctx) != nil {
			break
		}
		err := o.definitions(ctx)
		if err == nil {
			var m manager.Manager
			if m, err = o.build(ctx); err == nil {
				o.waitFor("the caches are not filled yet")
				return m, nil
			}
		}
		if !passes(err) {
			return nil, err
		}
		if text := err.Error(); ctx.Err() == nil && !o.server.isAway() {
			o.waitFor(text)
			if text != told {
				o.options.Log.Info("the operator waits", "for", text)
				told = text
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(definitionsPause):
		}
	}
	return nil, nil
}

// passes reports whether an error at the start may be temporary: the API server is away or
// starting, or the definitions are still missing.
func passes(err error) bool {
	return errors.As(err, new(*missingError)) || errors.As(err, new(*url.Error)) || meta.IsNoMatchError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsForbidden(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

type missingError struct{ resource string }

func (e *missingError) Error() string {
	return fmt.Sprintf("the definition of %s.%s: kubectl apply -k deploy/definitions makes it", e.resource, spec.GroupName)
}

func (o *Operator) definitions(ctx context.Context) error {
	config := rest.CopyConfig(o.config)
	config.Timeout = probeTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	list, err := client.ServerResourcesForGroupVersion(spec.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return &missingError{spec.ResourceVirtualMachines}
	}
	if err != nil {
		return fmt.Errorf("ask for the definitions: %w", err)
	}
	known := map[string]bool{}
	for _, r := range list.APIResources {
		known[r.Name] = true
	}
	for _, r := range o.kinds {
		if !known[r.resource] {
			return &missingError{r.resource}
		}
	}
	return ctx.Err()
}

func (o *Operator) build(ctx context.Context) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	kinds := o.kinds
	if len(o.options.Namespaces) > 0 {
		// They belong to the one operator that sees all namespaces.
		kinds = without(kinds, spec.KindClusterImage)
		switch may, err := o.mayReadClasses(ctx); {
		case err != nil:
			return nil, err
		case !may:
			o.options.Log.Info("machines have no classes, because " + classesUnreadable)
			kinds = without(kinds, spec.KindClass)
		}
	}
	if in := o.options.Settings.ImageNamespace; in == "" || slices.Contains(o.options.Without, in) {
		kinds = without(kinds, spec.KindClusterImage)
	}
	addStored(scheme, kinds)
	from := newStores(kinds)
	m, err := ctrl.NewManager(o.config, o.managerOptions(ctx, scheme, kinds, from))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	if err := addIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return nil, err
	}
	writes, err := newWriteCounter(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	counted, err := register(metrics.Registry, newCensus())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	counted.of(m.GetCache(), o.leading.is)
	all, err := metadata.NewForConfigAndClient(metadata.ConfigFor(o.config), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	p := &preparations{client: all, namespaces: o.options.Namespaces, server: o.server, log: o.options.Log, now: time.Now, at: map[string]time.Time{}}
	if err := m.Add(p); err != nil {
		return nil, fmt.Errorf("what namespaces need: %w", err)
	}
	waiting, err := newWaitingPods(m, o.options, o.server)
	if err != nil {
		return nil, fmt.Errorf("pods of others: %w", err)
	}
	s := newSetup(m, from, o.options, o.gate, writes, p, waiting, kinds)
	if err := waiting.tell(ctx, s.starts); err != nil {
		return nil, err
	}
	if err := m.Add(waiting); err != nil {
		return nil, fmt.Errorf("pods of others: %w", err)
	}
	for _, r := range kinds {
		if err := r.add(s); err != nil {
			return nil, fmt.Errorf("controller of the kind %s: %w", r.kind, err)
		}
	}
	c := &cleaner{client: m.GetClient(), live: m.GetAPIReader(), writes: writes, namespaces: o.options.Namespaces, without: o.options.Without, log: o.options.Log, gate: o.gate}
	if err := m.Add(c); err != nil {
		return nil, fmt.Errorf("clean-up: %w", err)
	}
	if err := m.Add(&withdrawer{
		client: m.GetClient(), cache: m.GetCache(), live: m.GetAPIReader(),
		operator: o.options.Settings.Operator, leads: o.leading.is, writes: writes, log: o.options.Log,
	}); err != nil {
		return nil, fmt.Errorf("end: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget = s.forget
	return m, nil
}

func (o *Operator) managerOptions(ctx context.Context, scheme *runtime.Scheme, kinds []registration, from *stores) manager.Options {
	controllers, _ := o.Logs()
	options := cacheOptions(o.options.Namespaces, o.options.Without, kinds)
	options.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		i := o.server.newInformer(lw, object, resync, indexers)
		from.add(object, i)
		return i
	}
	out := manager.Options{
		Scheme: scheme, Cache: options, Logger: controllers,
		Metrics:                 server.Options{BindAddress: orNone(o.options.MetricsAddress)},
		HealthProbeBindAddress:  orNone(""),
		GracefulShutdownTimeout: new(stopTimeout),
		NewCache: func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			c, err := cache.New(config, options)
			if err != nil {
				return nil, err
			}
			return &endingCache{c, ctx}, nil
		},
	}
	// Names of controllers are unique in a process only for the sake of metrics.
	out.Controller.SkipNameValidation = new(true)
	return out
}

func orNone(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// endingCache lets an operator end while its caches cannot be filled: a manager's wait for its
// caches does not return when the context has ended, and spins (docs/decisions/operator.md). This
// one reports synced when the context ends.
type endingCache struct {
	cache.Cache
	process context.Context
}

// WaitForCacheSync implements [cache.Informers].
func (c *endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.process, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || c.process.Err() != nil
}

// serveProbes serves the liveness and readiness probes. An operator that waits for the lease is
// ready. They are served from the beginning, so that the kubelet does not kill an operator that
// waits for the API server.
func (o *Operator) serveProbes(ctx context.Context, around *sync.WaitGroup) error {
	if o.options.ProbeAddress == "" || o.options.ProbeAddress == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.options.ProbeAddress)
	if err != nil {
		return fmt.Errorf("serve probes: %w", err)
	}
	mux := http.NewServeMux()
	for path, check := range map[string]func(*http.Request) error{"/healthz": o.gate.healthy, "/readyz": o.ready} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if err := check(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = fmt.Fprintln(w, "ok")
		})
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	around.Go(func() {
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.options.Log.Error(err, "the probes are not served any more")
		}
	})
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return nil
}

func (o *Operator) ready(*http.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits != "" {
		return errors.New(o.waits)
	}
	return nil
}

// mayReadClasses asks whether the operator may read classes. They are cluster-scoped, and an
// operator installed in a namespace has by itself no rights outside of it.
func (o *Operator) mayReadClasses(ctx context.Context) (bool, error) {
	c, err := authorization.NewForConfig(o.config)
	if err != nil {
		return false, err
	}
	for _, verb := range []string{"list", "watch"} {
		answer, err := c.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: spec.GroupName, Version: spec.Version, Resource: spec.ResourceClasses,
			}},
		}, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return true, nil // unknown; the watch will find out
		case err != nil:
			return false, fmt.Errorf("ask whether classes may be read: %w", err)
		case !answer.Status.Allowed:
			return false, nil
		}
	}
	return true, nil
}
