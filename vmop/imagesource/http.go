package imagesource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Local selects which connections are allowed to addresses that only this host, or its link,
// reaches: loopback, link-local (where clouds serve metadata to their machines) and multicast
// addresses.
type Local int

// The values of Local.
const (
	// LocalRefused allows none. It is for programs, such as a pod, that do not act for the user who
	// named the source.
	LocalRefused Local = iota
	// LocalNamed allows those that the source itself names, by their address or as localhost, but
	// not by redirection or by another name.
	LocalNamed
	// LocalAllowed allows all.
	LocalAllowed
)

const (
	connectTimeout   = 30 * time.Second
	handshakeTimeout = 30 * time.Second
	idleTimeout      = time.Minute
	defaultStall     = time.Minute

	maxRedirects = 10
	// maxHeader bounds a response's header, in bytes.
	maxHeader = 64 << 10
)

// errRefused is wrapped by errors about connections and redirections that are not allowed.
var errRefused = errors.New("not allowed")

// ErrRedirect means that the server redirects to a refused location. It is not transient: the next
// request would be redirected, too.
var ErrRedirect = fmt.Errorf("%w", errRefused)

// reachesOutside reports whether an address may be that of another host.
func reachesOutside(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsLoopback() && !a.IsUnspecified() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && a.IsValid() &&
		// Translated and tunnelled forms of any IPv4 address.
		!nat64.Contains(a) && !sixToFour.Contains(a)
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

type guard struct {
	local Local
	// named is host:port of the source if that is an address or localhost.
	named string

	mu      sync.Mutex
	proxies map[string]bool // of the environment, which is trusted
}

func newGuard(local Local, source string) *guard {
	g := &guard{local: local, proxies: map[string]bool{}}
	if u, err := url.Parse(source); err == nil && local == LocalNamed {
		h := strings.ToLower(u.Hostname())
		if _, err := netip.ParseAddr(h); err == nil || h == "localhost" {
			g.named = hostPort(u)
		}
	}
	return g
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (g *guard) proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil {
		g.mu.Lock()
		g.proxies[hostPort(u)] = true
		g.mu.Unlock()
	}
	return u, err
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	free := g.local == LocalAllowed || g.named != "" && strings.EqualFold(address, g.named) || g.proxies[strings.ToLower(address)]
	g.mu.Unlock()
	d := net.Dialer{Timeout: connectTimeout}
	if !free {
		// Control is called with the resolved address.
		d.Control = func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil || !reachesOutside(a.Addr()) {
				return fmt.Errorf("%w: %s is an address of this host or its link", errRefused, address)
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, address)
}

func (g *guard) redirect(next *http.Request, before []*http.Request) error {
	to := redact(next.URL.String())
	switch last := before[len(before)-1].URL; {
	case len(before) >= maxRedirects:
		return fmt.Errorf("%w: the server leads from one address to the next, %d times", ErrRedirect, len(before))
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return fmt.Errorf("%w: the server leads to %s, which is neither http nor https", ErrRedirect, to)
	case last.Scheme == "https" && next.URL.Scheme == "http":
		return fmt.Errorf("%w: the server leads from https to %s", ErrRedirect, to)
	}
	// A proxy would connect in place of dial.
	if a, err := netip.ParseAddr(next.URL.Hostname()); err == nil && g.local != LocalAllowed && !reachesOutside(a) && hostPort(next.URL) != g.named {
		return fmt.Errorf("%w: the server leads to %s, an address of this host or its link", ErrRedirect, to)
	}
	return nil
}

func (g *guard) transport(ca []byte) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: g.proxy, DialContext: g.dial, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: 1,
		DisableCompression: true, // an image is what the server has
		TLSClientConfig:    &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(ca) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			return nil, errors.New("certificates of authorities: there is none in the form of PEM")
		}
		t.TLSClientConfig.RootCAs = pool
	}
	return t, nil
}

// plain strips the URL, which may contain a secret, from an error of a request.
func plain(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}
