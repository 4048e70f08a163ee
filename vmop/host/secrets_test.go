package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

const machineWithSecret = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  cloudInit: {userDataFrom: {secretRef: {name: web-init}}}
  vm: {maximumCpus: 1}
`

const secretManifest = `# what follows is secret
apiVersion: v1
kind: Secret
metadata: {name: web-init}
data: {other: b3RoZXI=}
stringData:
  userData: |
    #cloud-config
    password: correct-horse
---
apiVersion: v1
kind: Secret
metadata: {name: web-init, namespace: elsewhere}
stringData: {userData: foreign}
`

// A machine gets the keys that it names, of a file that is remembered; what is in it is
// in nothing that is kept.
func TestSecretsOfAMachine(t *testing.T) {
	dir := t.TempDir()
	h, err := Open(Options{DataDir: filepath.Join(dir, "data"), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := spec.Load("vm.yaml", []byte(machineWithSecret), spec.Options{Default: true, Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	o := &objects[0]
	if _, err := h.Create(o, Given{}); err == nil || !strings.Contains(err.Error(), "spec.cloudInit.userDataFrom: the key userData of the Secret web-init was not found") {
		t.Fatalf("without its secret: %v", err)
	}
	file := filepath.Join(dir, "secret.yaml")
	if err := os.WriteFile(file, []byte(secretManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := h.Create(o, Given{Secrets: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	c, used, err := h.configuration(o, Given{})
	if err != nil {
		t.Fatal(err)
	}
	if len(used) != 1 || len(used["web-init"]) != 1 || string(used["web-init"]["userData"]) != "#cloud-config\npassword: correct-horse\n" {
		t.Errorf("the machine gets %q", used)
	}
	if s := c.Runner.CloudInit.UserDataFrom; s.ContentDigest == "" || s.File != "" {
		t.Errorf("%+v", s)
	}
	err = filepath.WalkDir(m.Data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "correct-horse") {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSecretsThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"no base64":   "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {userData: correct-horse!}\n",
		"twice":       "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"no YAML":     "correct-horse: [",
		"a number":    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {userData: 12}\n",
		"no mapping":  "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: correct-horse\n",
		"not a place": "",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret.yaml")
			if text != "" {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := readSecrets([]string{file}, DefaultNamespace)
			if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "correct-horse") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A machine is provisioned from a Secret of the type for it, under either key.
func TestSecretsOfProvisioning(t *testing.T) {
	const head = "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: web}\nspec:\n  vm: {maximumCpus: 1}\n  provisioning: "
	const user, sysprep = "{type: UserDataRef, userDataRef: {kind: Secret, name: init}}", "{type: SysprepRef, sysprepRef: {name: init}}"
	for name, c := range map[string]struct{ provisioning, kind, data, says, has string }{
		"user data":       {user, "vmoperator.jdrupes.org/cloud-init", "userData: correct-horse", "", "userData"},
		"the other key":   {user, "provisioning.virtualization.deckhouse.io/cloud-init", "userdata: correct-horse", "", "userdata"},
		"no key":          {user, "vmoperator.jdrupes.org/cloud-init", "data: correct-horse", "spec.provisioning.userDataRef: the key userData of the Secret init was not found", ""},
		"no type":         {user, "''", "userData: correct-horse", `spec.provisioning.userDataRef: the Secret init has the type ""; write type: vmoperator.jdrupes.org/cloud-init into its manifest`, ""},
		"that of sysprep": {user, "vmoperator.jdrupes.org/sysprep", "userData: correct-horse", `has the type "vmoperator.jdrupes.org/sysprep"`, ""},
		"sysprep":         {sysprep, "provisioning.virtualization.deckhouse.io/sysprep", "unattend.xml: correct-horse", "", "unattend.xml"},
		"only the first":  {sysprep, "vmoperator.jdrupes.org/sysprep", "Autounattend.xml: correct-horse", "", "Autounattend.xml"},
		"neither":         {sysprep, "vmoperator.jdrupes.org/sysprep", "answers: correct-horse", "spec.provisioning.sysprepRef: the key unattend.xml or autounattend.xml of the Secret init was not found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h, err := Open(Options{DataDir: filepath.Join(dir, "data"), Getenv: func(string) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			objects, err := spec.Load("vm.yaml", []byte(head+c.provisioning+"\n"), spec.Options{Default: true, Validate: true})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "secret.yaml")
			text := "apiVersion: v1\nkind: Secret\nmetadata: {name: init}\ntype: " + c.kind + "\nstringData: {" + c.data + "}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, used, err := h.configuration(&objects[0], Given{Secrets: []string{file}})
			switch {
			case c.says == "" && (err != nil || string(used["init"][c.has]) != "correct-horse"):
				t.Errorf("%v, %v", used, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "horse")):
				t.Errorf("got %v", err)
			}
		})
	}
}
