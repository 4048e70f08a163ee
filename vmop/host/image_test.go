package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk ann@host"

func desiredObject(t *testing.T, size string) *spec.Object {
	t.Helper()
	vm, err := ImageMachine{Name: "debian", CPUs: 2, Memory: resource.MustParse("1Gi"), DiskSize: resource.MustParse(size), User: "ann", SSHKeys: []string{testKey}}.Machine()
	if err != nil {
		t.Fatal(err)
	}
	text, err := spec.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	o, err := only(spec.Load("m", text, spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	return &o
}

func imageHost(t *testing.T) *Host {
	t.Helper()
	dir := t.TempDir()
	h, err := Open(Options{DataDir: dir, Getenv: func(string) string { return dir }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What is made of an image has a copy of it, enlarged; what is refused leaves
// nothing behind.
func TestCreateFromImage(t *testing.T) {
	t.Parallel()
	content := append([]byte("\x00boot sector"), bytes.Repeat([]byte{1}, 1<<20)...)
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	file := filepath.Join(t.TempDir(), "debian.raw")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/debian.raw":
			_, _ = w.Write(content)
		case "/short":
			w.Header().Set("Content-Length", fmt.Sprint(len(content)+1))
			_, _ = w.Write(content)
		case "/page":
			_, _ = w.Write([]byte("<html>log in</html>"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	wrong := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		name  string
		image Image
		err   string
	}{
		{"file", Image{Source: file, Checksum: sum}, ""},
		{"URL", Image{Source: server.URL + "/debian.raw", Checksum: sum}, ""},
		{"no checksum", Image{Source: server.URL + "/debian.raw"}, ""},
		{"another file", Image{Source: file, Checksum: wrong}, "its checksum is "},
		{"another download", Image{Source: server.URL + "/debian.raw", Checksum: wrong}, "its checksum is "},
		{"no checksum at all", Image{Source: file, Checksum: "md5:00"}, "want sha256:HEX"},
		{"not there", Image{Source: server.URL + "/none"}, "404 Not Found"},
		{"broken off", Image{Source: server.URL + "/short"}, "unexpected EOF"},
		{"a page", Image{Source: server.URL + "/page"}, "a web page"},
		{"a directory", Image{Source: filepath.Dir(file)}, "it is no file"},
		{"a registry", Image{Source: "oci://A:B:C"}, "want oci://REGISTRY/REPOSITORY:TAG"},
		{"another scheme", Image{Source: "ftp://host/debian.raw"}, "http, https or oci"},
		{"larger than desired", Image{Source: file, Size: 4096}, "no disk is made smaller"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := imageHost(t)
			if c.image.Size == 0 {
				c.image.Size = 8 << 20
			}
			m, err := h.CreateFromImage(t.Context(), desiredObject(t, "8Mi"), Given{}, c.image, ImageOptions{})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				left, _ := filepath.Glob(filepath.Join(h.DataDir(), machinesDir, "*", "*"))
				hidden, _ := filepath.Glob(filepath.Join(h.DataDir(), machinesDir, "*", ".*"))
				if len(left)+len(hidden) > 0 {
					t.Errorf("left behind: %v %v", left, hidden)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(m.Data, SystemDisk+".img"))
			if err != nil || len(got) != 8<<20 || !bytes.HasPrefix(got, content) {
				t.Errorf("the disk has %d bytes, %v", len(got), err)
			}
			if _, err := m.Object(); err != nil {
				t.Error(err)
			}
			if _, err := h.CreateFromImage(t.Context(), desiredObject(t, "8Mi"), Given{}, c.image, ImageOptions{}); !errors.Is(err, ErrExists) {
				t.Error(err)
			}
		})
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, content) {
		t.Error("the image itself was changed")
	}
}

func TestQCOW2IsEnlarged(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Fatal("install qemu-utils: ", err)
	}
	file := filepath.Join(t.TempDir(), "debian.qcow2")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", file, "1M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h := imageHost(t)
	m, err := h.CreateFromImage(t.Context(), desiredObject(t, "3Mi"), Given{}, Image{Source: file, Size: 3 << 20}, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("qemu-img", "info", "--output=json", filepath.Join(m.Data, SystemDisk+".img")).Output()
	if err != nil || !strings.Contains(string(out), `"virtual-size": 3145728`) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheMachineIsKeptWhenItsImageIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debian.raw")
	if err := os.WriteFile(file, []byte("\x00boot sector"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := imageHost(t)
	image := Image{Source: file, Size: 8 << 20}
	given := errors.New("there is none")
	if _, err := h.CreateFromImage(t.Context(), desiredObject(t, "8Mi"), Given{}, image, ImageOptions{Fetched: func() (*spec.Object, error) { return nil, given }}); !errors.Is(err, given) {
		t.Error(err)
	}
	m, err := h.CreateFromImage(t.Context(), desiredObject(t, "8Mi"), Given{}, image, ImageOptions{Fetched: func() (*spec.Object, error) {
		return desiredObject(t, "16Mi"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.Object()
	if err != nil {
		t.Fatal(err)
	}
	if want := desiredObject(t, "16Mi"); !bytes.Equal(o.Raw, want.Raw) {
		t.Errorf("kept is\n%s", o.Raw)
	}
}

func TestInterruptedDownload(t *testing.T) {
	began := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	go func() {
		<-began
		cancel(given)
	}()
	h := imageHost(t)
	if _, err := h.CreateFromImage(ctx, desiredObject(t, "8Mi"), Given{}, Image{Source: server.URL, Size: 8 << 20}, ImageOptions{}); !errors.Is(err, given) {
		t.Error(err)
	}
}

func TestForwardsAreUnderstood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := spec.HostForward{
			Protocol:    rapid.SampledFrom([]spec.ForwardProtocol{spec.ForwardTCP, spec.ForwardUDP}).Draw(t, "protocol"),
			HostAddress: rapid.SampledFrom([]string{"", "0.0.0.0", "192.168.1.2"}).Draw(t, "address"),
			HostPort:    rapid.Int32Range(1, 65535).Draw(t, "port"), GuestPort: rapid.Int32Range(1, 65535).Draw(t, "guest's port"),
		}
		text := fmt.Sprintf("%d:%d/%s", want.HostPort, want.GuestPort, want.Protocol)
		if want.HostAddress != "" {
			text = want.HostAddress + ":" + text
		}
		if got, err := ParseForward(text); got != want || err != nil {
			t.Fatalf("%s is %+v, %v", text, got, err)
		}
	})
	for _, text := range []string{"", "80", "0:80", "80:0", "65536:80", "a:80", "80:80/sctp", "::1:80:80", "host:80:80", "1:2:3:4", "80:80/", "-1:80", "+1:80"} {
		if got, err := ParseForward(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestNamesOfImages(t *testing.T) {
	for image, want := range map[string]string{
		"https://x/debian-13-genericcloud-amd64.qcow2?a=/b.c": "debian-13-genericcloud-amd64",
		"/srv/Fedora-Cloud_44.raw":                            "fedora-cloud-44",
		"12.img":                                              "vm-12", "...": "vm", "ü.qcow2": "vm",
		"/srv/" + strings.Repeat("a", 39) + "-b.img": strings.Repeat("a", 39),
	} {
		if got := NameOfImage(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		image := rapid.String().Draw(t, "image")
		vm, err := ImageMachine{Name: NameOfImage(image), CPUs: 1, Memory: resource.MustParse("1Gi"), DiskSize: resource.MustParse("1Gi"), User: "ann", SSHKeys: []string{testKey}}.Machine()
		if err != nil {
			t.Fatal(err)
		}
		text, err := spec.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := only(spec.Load("m", text, spec.Options{Default: true, Validate: true})); err != nil {
			t.Fatal(err)
		}
	})
}

func TestImageMachinesThatAreRefused(t *testing.T) {
	if keys, err := PublicKeys("# mine\n\n" + testKey + "\n"); err != nil || len(keys) != 1 {
		t.Errorf("%v, %v", keys, err)
	}
	for _, text := range []string{"-----BEGIN OPENSSH PRIVATE KEY-----\n", "hello\n", "ssh-rsa\n"} {
		if _, err := PublicKeys(text); err == nil {
			t.Errorf("%q is a key", text)
		}
	}
	for _, user := range []string{"", "root", "Ann", "a b", "a\nb", "-a"} {
		if _, err := (ImageMachine{Name: "a", User: user}).Machine(); err == nil {
			t.Errorf("%q is a user", user)
		}
	}
}

// ssh itself understands the options, whatever the path has in it.
func TestSSHOptions(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal("install openssh-client: ", err)
	}
	vm := desiredObject(t, "8Mi").VirtualMachine
	m := &Machine{Namespace: "default", Name: "debian", Directories: Directories{Data: `/home/ann b/%h "q"/debian`}}
	if _, err := m.SSHOptions(vm, SSH{}); err == nil || !strings.Contains(err.Error(), "hostForwards") {
		t.Error(err)
	}
	vm.Spec.VM.Networks[0].User.HostForwards = []spec.HostForward{{HostPort: 53, GuestPort: 22, Protocol: spec.ForwardUDP}, {HostPort: 2201, GuestPort: 22, HostAddress: "0.0.0.0"}}
	options, err := m.SSHOptions(vm, SSH{User: "ann", Identity: "/home/ann b/key"})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(SSHConfig("debian", options)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"arguments": append(append([]string{"-F", "/dev/null"}, SSHArguments(options)...), "127.0.0.1"),
		"section":   {"-F", config, "debian"},
	} {
		out, err := exec.Command(ssh, append([]string{"-G"}, args...)...).Output()
		if err != nil {
			t.Fatal(name, err)
		}
		for _, want := range []string{"hostname 127.0.0.1", "port 2201", "user ann", "hostkeyalias vmop.default.debian", "stricthostkeychecking accept-new", "identitiesonly yes"} {
			if !strings.Contains(string(out), want+"\n") {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "userknownhostsfile") && !strings.Contains(line, "/home/ann b/%") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestFreeSSHPort(t *testing.T) {
	h := imageHost(t)
	first, err := h.FreeSSHPort()
	if err != nil {
		t.Fatal(err)
	}
	o := desiredObject(t, "8Mi")
	vm := o.VirtualMachine.DeepCopy()
	vm.Spec.VM.Networks[0].User.HostForwards = []spec.HostForward{{HostPort: first, GuestPort: 22}}
	text, err := spec.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := only(spec.Load("m", text, spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Create(&taken, Given{}); err != nil {
		t.Fatal(err)
	}
	if second, err := h.FreeSSHPort(); err != nil || second == first {
		t.Errorf("%d is chosen twice, %v", second, err)
	}

	// Of another host nobody knows the manifests, but which ports it holds.
	port, release, err := h.HoldSSHPort()
	if err != nil {
		t.Fatal(err)
	}
	other := imageHost(t)
	if its, err := other.FreeSSHPort(); err != nil || its == port {
		t.Errorf("%d is chosen while it is held, %v", its, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
