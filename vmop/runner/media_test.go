package runner

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// cdConfig is a machine with a CD drive for each image, whose guest has a driver
// for them.
func cdConfig(t *testing.T, images ...string) runnerconfig.Config {
	t.Helper()
	c := testConfig(t)
	g := testbin.GenericTinyGuest(t)
	c.Runner.VM.KernelBoot.Kernel, c.Runner.VM.KernelBoot.Initrd = g.Kernel, g.Initrd
	for _, image := range images {
		c.Runner.VM.Drives = append(c.Runner.VM.Drives, runnerconfig.Drive{Type: runnerconfig.DriveCD, File: image})
	}
	return c
}

// insert puts an image into a drive of the configuration.
func insert(n int, image string) func(*runnerconfig.Runner) {
	return func(r *runnerconfig.Runner) {
		r.VM.Drives = slices.Clone(r.VM.Drives)
		r.VM.Drives[n].File = image
	}
}

// disc is the content of an image whose parts differ.
func disc(name string) []byte {
	var b bytes.Buffer
	for b.Len() < 1<<20 {
		fmt.Fprintf(&b, "%s at %7d, ", name, b.Len())
	}
	return b.Bytes()[:1<<20]
}

// discIn compares what the guest reads from a drive with what it should hold, at
// the begin and further on.
func discIn(t *testing.T, c *tinyguest.Console, drive string, want []byte) {
	t.Helper()
	for _, offset := range []int{0, 700 << 10} {
		line := fmt.Sprintf("read %s %d %d", drive, offset, 64)
		var got string
		var err error
		// The first reads of a new medium fail: the drive tells of the change so.
		for range 10 {
			if got, err = c.Command(withPatience(t), line); err == nil {
				break
			}
		}
		if err != nil || strings.TrimSuffix(got, "\n") != string(want[offset:offset+64]) {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want[offset:offset+64])
		}
	}
}

// tools connects to the monitor that others than the runner use.
func (r *running) tools(t *testing.T) *qmp.Client {
	t.Helper()
	client, err := qmp.Dial(t.Context(), r.State().Socket(qemucmd.SocketToolMonitor), qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// held lists the block nodes of a QEMU and the files that it has open.
func (r *running) held(t *testing.T, client *qmp.Client) (nodes, files []string) {
	t.Helper()
	infos, err := qmp.Do(t.Context(), client, qmp.QueryNamedBlockNodes{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range infos {
		nodes = append(nodes, n.NodeName+" "+n.Driver+" "+n.File)
	}
	dir := fmt.Sprintf("/proc/%d/fd", r.State().QEMUPID)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			files = append(files, name)
		}
	}
	return nodes, files
}

// However often the media are changed, QEMU keeps open what is in the drives and
// nothing else.
func TestMediumChangesKeepNothingOpen(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	dir := t.TempDir()
	var images []string
	for _, name := range []string{"one", "two", "three"} {
		images = append(images, filepath.Join(dir, name))
		put(t, images[len(images)-1], string(disc(name)))
	}
	c := testConfig(t)
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: runnerconfig.DriveCD, File: images[0]}, {Type: runnerconfig.DriveCD}}
	r := start(t, c, d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	client := r.tools(t)
	settled := reason(live.MediaChanged, live.ReasonAsConfigured)
	for n := range 100 {
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) {
			insert(0, images[n%3])(r)
			insert(1, append(images, "")[n%4])(r)
		})
		r.now(t, "the media are changed", settled)
	}
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { insert(0, images[1])(r); insert(1, "")(r) })
	r.now(t, "the media are changed", settled)
	nodes, files := r.held(t, client)
	// One medium: its format, its file.
	if len(nodes) != 2 || !strings.Contains(nodes[0], qemucmd.FDSetPrefix) {
		t.Errorf("block nodes %q, which should be of a descriptor", nodes)
	}
	// The descriptor that it was given, and the copy of that which it uses.
	if open := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return filepath.Dir(f) != dir }); !slices.Equal(open, []string{images[1], images[1]}) {
		t.Errorf("open are %q of %q", open, files)
	}
	if sets, err := qmp.Do(t.Context(), client, qmp.QueryFDSets{}); err != nil || len(sets) != 1 {
		t.Errorf("sets of descriptors: %+v, %v", sets, err)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// An image repository that is a volume of Kubernetes is full of symbolic links,
// which lead to the files as they do everywhere else. Beside its drive the guest reads
// the CD with the answers of Windows' setup, of which nothing is left afterwards. Its
// kernel is the one that has 9p, too.
func TestMediumBehindLinks(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	v := &volume{dir: t.TempDir()}
	v.write(t, map[string]string{"a.iso": string(disc("a")), "b.iso": string(disc("b"))})
	a, b := filepath.Join(v.dir, "a.iso"), filepath.Join(v.dir, "b.iso")
	c := cdConfig(t, a)
	c.Runner.Sysprep = &runnerconfig.Sysprep{Unattend: &runnerconfig.CloudInitSource{Secret: "answers", Key: "unattend.xml"}}
	folders := newNineP(t)
	c.Runner.VM.Shares = folders.shares()
	r := start(t, c, d, func(o *Options) {
		o.Secrets = map[string]map[string][]byte{"answers": {"unattend.xml": []byte("<unattend>" + password + "</unattend>")}}
	})
	console := r.console(t)
	discIn(t, console, "sr0", disc("a"))
	if got := command(t, console, "mount sr1 /answers"); !strings.Contains(got, "iso9660") {
		t.Errorf("on the second drive is %s", got)
	}
	if got := command(t, console, "cat /answers/unattend.xml"); !strings.Contains(got, password) {
		t.Errorf("the guest reads %s", got)
	}
	r.reconfigure(t, &c, insert(0, b))
	r.changed(t, "the medium to be changed", "cd0", b)
	r.now(t, "the medium is changed", reason(live.MediaChanged, live.ReasonAsConfigured))
	discIn(t, console, "sr0", disc("b"))
	folders.seenIn(t, console)
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// curlHost is this machine as a probe sees it, with a QEMU that reads from http
// servers.
func curlHost(t *testing.T) qemucmd.Host {
	t.Helper()
	found, err := hostprobe.Probe(t.Context(), hostprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := found.Host
	for _, driver := range []string{"http", "https"} {
		if !slices.Contains(h.BlockDrivers, driver) {
			t.Fatalf("QEMU has no block driver %s: install it with: make deps", driver)
		}
	}
	h.KVM = false
	return h
}

func serve(t *testing.T, listen func(http.Handler) *httptest.Server, discs map[string][]byte) *httptest.Server {
	t.Helper()
	s := listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := discs[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content)) // with ranges, which QEMU needs
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that the client breaks off
	t.Cleanup(s.Close)
	return s
}

// CDs that an http server has: from the start, and while the machine runs. One
// that cannot be had holds nothing else back.
func TestMediaFromServers(t *testing.T) {
	t.Parallel()
	discs := map[string][]byte{"/a.iso": disc("a"), "/b.iso": disc("b")}
	plain := serve(t, httptest.NewServer, discs)
	secure := serve(t, httptest.NewTLSServer, discs)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := "http://" + gone.Addr().String() + "/a.iso"
	_ = gone.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	d := testDirs(t)
	c := cdConfig(t, plain.URL+"/a.iso", "")
	r := start(t, c, d, func(o *Options) { o.Host = curlHost(t) })
	console := r.console(t)
	discIn(t, console, "sr0", discs["/a.iso"])
	// By a name: QEMU asks for it in a thread, which its sandbox must allow.
	byName := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1) + "/b.iso"
	r.reconfigure(t, &c, insert(1, byName))
	r.changed(t, "the medium to be inserted", "cd1", byName)
	r.now(t, "the medium is inserted", reason(live.MediaChanged, live.ReasonAsConfigured))
	discIn(t, console, "sr1", discs["/b.iso"])

	for _, tt := range []struct{ name, image, says string }{
		{"a certificate that nobody has signed", secure.URL + "/a.iso", "certificate"},
		{"a server that is away", away, "connect"},
		{"a server that does not answer", "http://" + silent.Addr().String() + "/a.iso", "timed out"},
		{"a file that is not there", plain.URL + "/none.iso", "404"},
	} {
		ram := 208<<20 - max(c.Runner.VM.CurrentRAM, 96<<20)
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) {
			insert(0, tt.image)(r)
			r.VM.CurrentRAM = ram
		})
		s := r.now(t, tt.name, func(s State) bool {
			return strings.Contains(condition(s, live.MediaChanged).Message, tt.says)
		})
		if got := condition(s, live.MediaChanged); got.Status != live.False || got.Reason != live.ReasonAdjusting {
			t.Errorf("%s: %+v", tt.name, got)
		}
		r.now(t, "the memory is changed nevertheless", func(s State) bool { return s.RAM == int64(ram) })
		discIn(t, console, "sr0", discs["/a.iso"]) // it was not taken out for one that does not come
	}
	r.reconfigure(t, &c, insert(0, plain.URL+"/b.iso"))
	r.now(t, "the next medium is inserted", reason(live.MediaChanged, live.ReasonAsConfigured))
	discIn(t, console, "sr0", discs["/b.iso"])
	nodes, _ := r.held(t, r.tools(t))
	if len(nodes) != 4 {
		t.Errorf("block nodes %q", nodes)
	}
	r.Stop()
	if o, err := r.wait(t); err != nil || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// A machine whose CD cannot be had does not start, and says why.
func TestStartWithoutItsServer(t *testing.T) {
	t.Parallel()
	secure := serve(t, httptest.NewTLSServer, map[string][]byte{"/a.iso": disc("a")})
	none := serve(t, httptest.NewServer, nil)
	host := curlHost(t)
	withoutCurl := host
	withoutCurl.BlockDrivers = []string{"file", "host_device", "qcow2", "raw"}
	for _, tt := range []struct {
		name, image string
		host        qemucmd.Host
		says        []string
	}{
		{"self-signed", secure.URL + "/a.iso", host, []string{"certificate"}},
		{"not there", none.URL + "/a.iso", host, []string{"404"}},
		{"no driver", none.URL + "/a.iso", withoutCurl, []string{`block driver "http"`, "qemu-block-extra"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := testDirs(t)
			r := start(t, cdConfig(t, tt.image), d, func(o *Options) { o.Host = tt.host })
			o, err := r.wait(t)
			if err == nil || o.Cause != CauseStartFailure {
				t.Fatalf("%+v, %v", o, err)
			}
			for _, text := range tt.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			nothingLeft(t, d)
		})
	}
}

// Without QEMU's curl driver a running machine keeps its medium.
func TestMediaFromServersWithoutDriver(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: runnerconfig.DriveCD}}
	r := start(t, c, d, func(o *Options) { o.Host.BlockDrivers = []string{"file", "host_device", "qcow2", "raw"} })
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	r.reconfigure(t, &c, insert(0, "https://example.org/a.iso"))
	s := r.now(t, "the refusal", reason(live.MediaChanged, live.ReasonCurlMissing))
	if got := condition(s, live.MediaChanged); got.Status != live.False || !strings.Contains(got.Message, "qemu-block-extra") {
		t.Errorf("%+v", got)
	}
	r.cancel()
	r.wait(t)
}
