package kubevirt

import (
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/dialect/internal/seedscript"
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// cloudInit translates a seed volume, and reports whether the volume is one.
func (m *machine) cloudInit(v *tree.Node) bool {
	seed := v.Get("cloudInitNoCloud")
	if drive := v.Get("cloudInitConfigDrive"); drive != nil {
		seed = drive
	}
	if seed == nil {
		return false
	}
	c := &spec.CloudInit{}
	if host := m.instance.Get("hostname"); host.Is() {
		c.MetaData = map[string]string{"local-hostname": host.String()}
	}
	c.UserData = document(seed, "userData", "#cloud-config")
	c.NetworkConfig = document(seed, "networkData", "")
	if v.Get("cloudInitConfigDrive") != nil {
		seed.Note("is a NoCloud seed here, which cloud-init finds likewise")
	}
	if ref := seed.Get("secretRef"); ref.Is() {
		c.UserData, c.UserDataFrom = nil, m.secretKey(ref, "userdata", "userData")
	}
	if ref := seed.Get("networkDataSecretRef"); ref.Is() {
		c.NetworkConfig, c.NetworkConfigFrom = nil, m.secretKey(ref, "networkdata", "networkData")
	}
	if m.vm.Spec.Provisioning != nil {
		seed.Note("does not go with sysprep here, and is left out")
		return true
	}
	m.vm.Spec.CloudInit = c
	return true
}

// sysprep translates a CD with the answers of Windows' setup, and reports whether the
// volume is one.
func (m *machine) sysprep(v *tree.Node) bool {
	answers := v.Get("sysprep")
	if answers == nil {
		return false
	}
	secret := answers.Get("secret", "name")
	switch {
	case m.vm.Spec.CloudInit != nil:
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

// secretKey refers to a Secret that has the document under one of several keys: the
// one that it has, if the Secret was given, too.
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

// document translates a document of cloud-init that is written out or in base64.
// Only YAML has a place; other user data begins with another line than header.
func document(seed *tree.Node, name, header string) *runtime.RawExtension {
	n := seed.Get(name)
	text := n.String()
	if coded := seed.Get(name + "Base64"); coded.Is() {
		n = coded
		data, err := base64.StdEncoding.DecodeString(coded.String())
		if err != nil {
			n.Note("is not base64 and is left out: %v", err)
			return nil
		}
		text = string(data)
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
