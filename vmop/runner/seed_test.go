package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/answercd"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const password = "correct-horse-battery"

// seedOf is an engine whose documents are files of a directory, as in a pod.
func seedOf(t *testing.T, dir string, say *chatter) *Engine {
	t.Helper()
	source := func(key, file string) *runnerconfig.CloudInitSource {
		return &runnerconfig.CloudInitSource{Secret: "web-init", Key: key, File: filepath.Join(dir, file)}
	}
	c := runnerconfig.Config{Runner: runnerconfig.Runner{
		VM: runnerconfig.VM{Name: "web"},
		CloudInit: &runnerconfig.CloudInit{
			MetaData:     map[string]string{"instance-id": "default.web", "local-hostname": "web"},
			MetaDataFrom: source("metaData", "meta-data"), UserDataFrom: source("userData", "user-data"),
			NetworkConfigFrom: source("networkConfig", "network-config"),
		},
	}}
	runnerconfig.Default(&c)
	e, err := New(Options{Config: c, Directories: Directories{Data: t.TempDir(), Runtime: t.TempDir()}, Reporter: say})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// chatter is all that an engine says.
type chatter struct{ bytes.Buffer }

func (s *chatter) State(st State)    { s.WriteString(st.Message) }
func (s *chatter) Message(m Message) { s.WriteString(m.Text + "\n") }

func putDocument(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDocumentsFromSecretsReachTheGuest(t *testing.T) {
	dir := t.TempDir()
	user := "#!/bin/sh\n# as it is\necho root:" + password + " | chpasswd\n"
	putDocument(t, dir, "user-data", user)
	putDocument(t, dir, "meta-data", "local-hostname: front\npublic-keys: ssh-ed25519 AAAA\nlaunch-index: 3\n")
	putDocument(t, dir, "network-config", "version: 2\nethernets: {}\n")
	var say chatter
	e := seedOf(t, dir, &say)
	seed := filepath.Join(t.TempDir(), "seed.img")
	if err := e.writeSeed("", seed); err != nil {
		t.Fatal(err)
	}
	found, err := imageinspect.Inspect(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	got := found.NoCloud
	if got == nil || *got.UserData != user || *got.NetworkConfig != "version: 2\nethernets: {}\n" {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{"local-hostname: front", `launch-index: "3"`, "instance-id: default.web"} {
		if !strings.Contains(*got.MetaData, want) {
			t.Errorf("no %s in\n%s", want, *got.MetaData)
		}
	}
	if strings.Contains(say.String(), password) {
		t.Errorf("it was told:\n%s", say.String())
	}
}

// What is missing or of no use is named by the Secret and its key, and nothing of what
// stands in it is told.
func TestDocumentsFromSecretsThatAreNotThere(t *testing.T) {
	for name, c := range map[string]struct{ user, meta, network, says string }{
		"no user data":        {"", "a: b", "version: 2", "userDataFrom: there is no key userData in the Secret web-init"},
		"unknown form":        {"password: " + password, "a: b", "version: 2", "begins in no way that cloud-init knows"},
		"meta-data of a list": {"#cloud-config", "a: [" + password + "]", "version: 2", `metaData: "a" is not a string`},
		"broken meta-data":    {"#cloud-config", "a: b\na: " + password, "version: 2", "metaData: is no YAML that can be used, in line 2"},
		"broken network":      {"#cloud-config", "a: b", "x: !!int " + password, "networkConfig: is no YAML"},
		"no mapping":          {"#cloud-config", "a: b", password, "networkConfig: must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"user-data": c.user, "meta-data": c.meta, "network-config": c.network} {
				if content != "" {
					putDocument(t, dir, file, content)
				}
			}
			err := seedOf(t, dir, &chatter{}).writeSeed("", filepath.Join(t.TempDir(), "seed.img"))
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), password) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A new content waits for the next start, and the configuration has its digest alone.
func TestNewContentOfASecretWaits(t *testing.T) {
	dir := t.TempDir()
	putDocument(t, dir, "user-data", "#cloud-config\npassword: "+password)
	putDocument(t, dir, "meta-data", "a: b")
	putDocument(t, dir, "network-config", "version: 2")
	e := seedOf(t, dir, &chatter{})
	e.RereadSecrets()
	if waits := live.RestartPaths(&e.o.Config, &e.desired.config); len(waits) != 0 {
		t.Errorf("nothing was changed, but %v waits", waits)
	}
	putDocument(t, dir, "user-data", "#cloud-config\npassword: other")
	e.RereadSecrets()
	if waits := live.RestartPaths(&e.o.Config, &e.desired.config); !slices.Equal(waits, []string{"cloudInit.userDataFrom.contentDigest"}) {
		t.Errorf("%v waits", waits)
	}
	if got := e.State().ChangedDocuments; !slices.Equal(got, []live.Document{{Name: "userData"}}) {
		t.Errorf("%v is told", got)
	}
	// A configuration that is the same otherwise changes nothing of that.
	c := e.desired.config
	c.Runner.Generation++
	if err := e.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	if waits := live.RestartPaths(&e.o.Config, &e.desired.config); len(waits) != 1 {
		t.Errorf("%v waits", waits)
	}
	// One that is gone is told as such, and nothing when it is back as it was.
	if err := os.Remove(filepath.Join(dir, "user-data")); err != nil {
		t.Fatal(err)
	}
	e.RereadSecrets()
	if got := e.State().ChangedDocuments; !slices.Equal(got, []live.Document{{Name: "userData", Missing: true}}) {
		t.Errorf("%v is told", got)
	}
	putDocument(t, dir, "user-data", "#cloud-config\npassword: "+password)
	e.RereadSecrets()
	if got := e.State().ChangedDocuments; len(got) != 0 {
		t.Errorf("%v is told", got)
	}
	putDocument(t, dir, "user-data", "#cloud-config\npassword: other")
	e.RereadSecrets()
	for _, c := range []*runnerconfig.Config{&e.o.Config, &e.desired.config} {
		text, err := runnerconfig.Marshal(*c)
		if err != nil || bytes.Contains(text, []byte(password)) {
			t.Errorf("%s, %v", text, err)
		}
	}
}

// User data that cloud-init makes nothing of reaches the guest as it is, with a warning
// that has nothing of it; that of cloudInit.userDataFrom is refused.
func TestUserDataOfAnyForm(t *testing.T) {
	for name, inline := range map[string]bool{"inline": true, "from a Secret": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "password: " + password + "\n"
			var say chatter
			e := seedOf(t, dir, &say)
			c := &runnerconfig.CloudInit{MetaData: map[string]string{"instance-id": "default.web"}}
			if inline {
				c.UserDataText = text
			} else {
				// The key that Deckhouse takes as well.
				putDocument(t, dir, "user-data.other", text)
				c.UserDataFrom = &runnerconfig.CloudInitSource{Secret: "web-init", Key: "userData", File: filepath.Join(dir, "user-data"),
					OtherKey: "userdata", OtherFile: filepath.Join(dir, "user-data.other"), AnyForm: true}
			}
			e.o.Config.Runner.CloudInit = c
			seed := filepath.Join(t.TempDir(), "seed.img")
			if err := e.writeSeed("", seed); err != nil {
				t.Fatal(err)
			}
			found, err := imageinspect.Inspect(t.Context(), seed)
			if err != nil || found.NoCloud == nil || *found.NoCloud.UserData != text {
				t.Fatalf("%+v, %v", found.NoCloud, err)
			}
			if said := say.String(); !strings.Contains(said, "the user data begins in no way that cloud-init knows") || strings.Contains(said, password) {
				t.Errorf("it was told: %s", said)
			}
		})
	}
}

// The CD has what the Secret has, is its owner's alone, and nothing tells what is on it.
// A change of the Secret waits for the next start.
func TestAnswersFromASecret(t *testing.T) {
	dir := t.TempDir()
	var say chatter
	e := seedOf(t, dir, &say)
	answer := func(key, other, file string) *runnerconfig.CloudInitSource {
		return &runnerconfig.CloudInitSource{Secret: "answers", Key: key, File: filepath.Join(dir, file), OtherKey: other, OtherFile: filepath.Join(dir, file+".other")}
	}
	e.o.Config.Runner.CloudInit = nil
	e.o.Config.Runner.Sysprep = &runnerconfig.Sysprep{
		Unattend:     answer("unattend.xml", "Unattend.xml", "unattend.xml"),
		Autounattend: answer("autounattend.xml", "Autounattend.xml", "autounattend.xml"),
	}
	path := filepath.Join(t.TempDir(), "sysprep.iso")
	if err := e.writeAnswers(path); err == nil || !strings.Contains(err.Error(), "sysprep: there is no key unattend.xml or autounattend.xml in the Secret answers") {
		t.Fatalf("without any: %v", err)
	}
	text := "<unattend>" + password + "</unattend>"
	putDocument(t, dir, "unattend.xml.other", text)
	if err := e.writeAnswers(path); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(image, []byte(text)) {
		t.Errorf("the CD lacks it: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	report, err := imageinspect.Inspect(t.Context(), path)
	if err != nil || report.FileSystem == nil || report.FileSystem.Type != "iso9660" || report.FileSystem.Label != answercd.Label {
		t.Errorf("%+v, %v", report, err)
	}
	e.o.Config = e.withDigests(e.o.Config)
	e.desired.config = e.o.Config
	putDocument(t, dir, "unattend.xml", "<unattend/>")
	e.RereadSecrets()
	if waits := live.RestartPaths(&e.o.Config, &e.desired.config); !slices.Equal(waits, []string{"sysprep.unattend.contentDigest"}) {
		t.Errorf("%v waits", waits)
	}
	text2, err := runnerconfig.Marshal(e.desired.config)
	if err != nil || bytes.Contains(text2, []byte(password)) || strings.Contains(say.String(), password) {
		t.Errorf("%s, %v", text2, err)
	}
}

// A renewed certificate of the display waits for the next start, at which QEMU reads it,
// and one that is gone is told as such; the authority need not be there.
func TestNewCertificateOfTheDisplayWaits(t *testing.T) {
	dir := t.TempDir()
	putDocument(t, dir, qemucmd.TLSCertFile, "certificate")
	putDocument(t, dir, qemucmd.TLSKeyFile, password)
	port := 5900
	c := runnerconfig.Config{Runner: runnerconfig.Runner{DataDir: "/d", VM: runnerconfig.VM{Name: "web", MaximumRAM: 1 << 28,
		Display: &runnerconfig.Display{VNC: &runnerconfig.VNC{Port: &port}, TLS: &runnerconfig.DisplayTLS{Dir: dir}}}}}
	runnerconfig.Default(&c)
	var say chatter
	e, err := New(Options{Config: c, Directories: Directories{Data: t.TempDir(), Runtime: t.TempDir()}, Reporter: &say})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, content string
		want          []live.Document
	}{
		{qemucmd.TLSKeyFile, password, nil},
		{qemucmd.TLSCertFile, "renewed", []live.Document{{Name: live.DisplayCertificate}}},
		{qemucmd.TLSCertFile, "certificate", nil},
		{qemucmd.TLSKeyFile, password + "2", []live.Document{{Name: live.DisplayCertificate}}},
		{qemucmd.TLSKeyFile, password, nil},
		{qemucmd.TLSCAFile, "authority", []live.Document{{Name: live.DisplayCertificate}}},
		{qemucmd.TLSKeyFile, "", []live.Document{{Name: live.DisplayCertificate, Missing: true}}},
	} {
		if step.content == "" {
			if err := os.Remove(filepath.Join(dir, step.name)); err != nil {
				t.Fatal(err)
			}
		} else {
			putDocument(t, dir, step.name, step.content)
		}
		e.RereadSecrets()
		if got := e.State().ChangedDocuments; !slices.Equal(got, step.want) {
			t.Errorf("after %s: %v is told, want %v", step.name, got, step.want)
		}
	}
	if strings.Contains(say.String(), password) {
		t.Errorf("it was told:\n%s", say.String())
	}
}
