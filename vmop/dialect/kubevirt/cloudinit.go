package kubevirt

import (
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/dialect/internal/seedscript"
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// cloudInit translates a seed volume, and reports whether v is one.
func (m *machine) cloudInit(v *tree.Node) bool {
	seed := v.Get("cloudInitNoCloud")
	if drive := v.Get("cloudInitConfigDrive"); drive != nil {
		seed = drive
	}
	if seed == nil {
		return false
	}
	seed.Read() // an empty one is a seed, too
	if with := m.provisioned(); with != "" {
		seed.Note("does not go with %s here, and is left out", with)
		return true
	}
	if v.Get("cloudInitConfigDrive") != nil {
		seed.Remark("is a NoCloud seed here, which cloud-init finds likewise")
	}
	host := m.instance.Get("hostname").String()
	if script := scriptAlone(seed); script != "" && (host == "" || host == m.vm.Name) {
		m.vm.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: script}
		return true
	}
	c := &spec.CloudInit{}
	if host != "" {
		c.MetaData = map[string]string{"local-hostname": host}
	}
	c.UserData = document(seed, "userData", "#cloud-config")
	c.NetworkConfig = document(seed, "networkData", "")
	if ref := seed.Get("secretRef"); ref.Is() {
		c.UserData, c.UserDataFrom = nil, m.secretKey(ref, "userdata", "userData")
	}
	if ref := seed.Get("networkDataSecretRef"); ref.Is() {
		c.NetworkConfig, c.NetworkConfigFrom = nil, m.secretKey(ref, "networkdata", "networkData")
	}
	m.vm.Spec.CloudInit = c
	return true
}

// provisioned names the existing provisioning; "" if there is none. Only one is possible: KubeVirt
// refuses a second seed, and the machine has one field for all kinds.
func (m *machine) provisioned() string {
	switch {
	case m.vm.Spec.HasAnswerCD():
		return "sysprep"
	case m.vm.Spec.HasSeed():
		return "another seed for cloud-init"
	}
	return ""
}

// scriptAlone returns user data that is a script, if the seed has nothing else. It is then passed
// on unchanged, which also works with systems that do not support cloud-config, such as CirrOS. It
// is "" if spec.provisioning does not accept it.
func scriptAlone(seed *tree.Node) string {
	for _, other := range []string{"secretRef", "networkDataSecretRef", "networkData", "networkDataBase64"} {
		if seed.Get(other).Is() {
			return ""
		}
	}
	script, _, err := written(seed, "userData")
	if err != nil || !strings.HasPrefix(script, "#!") || len(script) > limits.MaxInlineUserData || !seedscript.Plain(script) {
		return ""
	}
	return script
}

// sysprep translates a CD with the answer files of Windows setup, and reports whether v is one.
func (m *machine) sysprep(v *tree.Node) bool {
	answers := v.Get("sysprep")
	if answers == nil {
		return false
	}
	secret := answers.Get("secret", "name")
	switch with := m.provisioned(); {
	case with == "sysprep":
		answers.Note("is a second one, and is left out")
	case with != "":
		answers.Note("does not go with cloud-init here, and is left out")
	case !secret.Is():
		answers.Note("only a Secret has a counterpart: write the answers into one of the type %s; the CD is left out", names.SecretTypeSysprep)
	default:
		name := secret.String()
		answers.Note("the Secret %s must have the type %s here, which it gets when it is made", name, names.SecretTypeSysprep)
		m.vm.Spec.Provisioning = &spec.Provisioning{
			Type: spec.ProvisioningSysprepRef, SysprepRef: &spec.ProvisioningSecret{Kind: names.KindSecret, Name: name},
		}
	}
	return true
}

// secretKey refers to a Secret that has the document under one of several keys; if the Secret was
// given, the one that exists.
func (m *machine) secretKey(ref *tree.Node, keys ...string) *spec.CloudInitSource {
	name := ref.Get("name").String()
	out := &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: name, Key: keys[0]}}
	secret, err := m.companion(name, kindSecret)
	if err != nil || secret == nil {
		ref.Note("the key is taken for %s; if the secret %s has %s, write that as its secretRef.key", keys[0], name, keys[1])
		return out
	}
	for _, key := range keys {
		if secret.Get("data", key).Is() || secret.Get("stringData", key).Is() {
			out.SecretRef.Key = key
		}
	}
	return out
}

func written(seed *tree.Node, name string) (string, *tree.Node, error) {
	coded := seed.Get(name + "Base64")
	if !coded.Is() {
		n := seed.Get(name)
		return n.String(), n, nil
	}
	data, err := base64.StdEncoding.DecodeString(coded.String())
	return string(data), coded, err
}

// document translates a document of cloud-init, given as text or in base64. Only YAML, and a script
// as user data, have a counterpart; header is the first line of user data.
func document(seed *tree.Node, name, header string) *runtime.RawExtension {
	text, n, err := written(seed, name)
	if err != nil {
		n.Note("is not base64 and is left out: %v", err)
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	if header != "" && strings.HasPrefix(first, "#!") {
		n.Note("is a script, which cloud-config writes to %s, where cloud-init runs it once; systems that take scripts only, such as CirrOS, do not", seedscript.Path)
		return seedscript.UserData(text)
	}
	if header != "" && strings.TrimSpace(first) != header {
		n.Note("begins with %q, not with %s or a script: nothing else has a counterpart, and it is left out", clip(first), header)
		return nil
	}
	data, err := yamljson.ToJSON([]byte(text))
	if err != nil {
		n.Note("cannot be read and is left out: %v", err)
		return nil
	}
	return &runtime.RawExtension{Raw: data}
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
