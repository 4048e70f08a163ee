package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// secrets are the contents of Secrets, by name and key.
type secrets map[string]map[string][]byte

type givenSecrets struct {
	content secrets
	types   map[string]string
}

// readSecrets reads the Secrets of a namespace from manifests, including those without a namespace.
// Errors must not contain their content.
func readSecrets(files []string, namespace string) (givenSecrets, error) {
	none, out := givenSecrets{}, givenSecrets{content: secrets{}, types: map[string]string{}}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return none, fmt.Errorf("read secrets: %w", err)
		}
		// Errors of other objects in the file are not returned: they could quote it.
		found, err := spec.Load(file, data, spec.Options{Lenient: true})
		if err != nil && len(found) == 0 {
			return none, fmt.Errorf("read secrets: %s cannot be read as YAML or JSON", file)
		}
		for i := range found {
			o := &found[i]
			if !isSecret(o, namespace) {
				continue
			}
			if out.content[o.Name] != nil {
				return none, fmt.Errorf("read secrets: %s: the Secret %s was there already", o.Position(""), o.Name)
			}
			if out.content[o.Name], out.types[o.Name], err = secretContent(o.Raw); err != nil {
				return none, fmt.Errorf("read secrets: %s: the Secret %s: %w", o.Position(""), o.Name, err)
			}
		}
	}
	return out, nil
}

// SecretFiles selects the files with a Secret from which a machine's guest is provisioned, for
// [Given]. Files that cannot be read are left out.
func SecretFiles(files []string, o *spec.Object) []string {
	if o == nil || o.VirtualMachine == nil {
		return nil
	}
	var referred []string
	if ref := o.VirtualMachine.Spec.Provisioning.Secret(); ref != nil {
		referred = append(referred, ref.Name)
	}
	if c := o.VirtualMachine.Spec.CloudInit; c != nil {
		for _, from := range []*spec.CloudInitSource{c.MetaDataFrom, c.UserDataFrom, c.NetworkConfigFrom} {
			if from != nil {
				referred = append(referred, from.SecretRef.Name)
			}
		}
	}
	var out []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || len(referred) == 0 {
			continue
		}
		found, _ := spec.Load(file, data, spec.Options{Lenient: true})
		if slices.ContainsFunc(found, func(s spec.Object) bool {
			return isSecret(&s, namespaceOr(o.Namespace)) && slices.Contains(referred, s.Name)
		}) {
			out = append(out, file)
		}
	}
	return out
}

func isSecret(o *spec.Object, namespace string) bool {
	return o.Kind == names.KindSecret && o.APIVersion == "v1" && (o.Namespace == "" || namespaceOr(o.Namespace) == namespace)
}

func secretContent(raw []byte) (content map[string][]byte, kind string, err error) {
	doc, err := yamljson.ToJSON(raw)
	if err != nil {
		return nil, "", errors.New("cannot be read")
	}
	var s struct {
		Type       string            `json:"type"`
		Data       map[string][]byte `json:"data"`
		StringData map[string]string `json:"stringData"`
	}
	if json.Unmarshal(doc, &s) != nil {
		return nil, "", errors.New("want base64 under data and strings under stringData")
	}
	out := map[string][]byte{}
	for k, v := range s.Data {
		out[k] = v
	}
	for k, v := range s.StringData { // the API server merges it over data
		out[k] = []byte(v)
	}
	return out, s.Type, nil
}

// checkType refuses a Secret whose type a cluster would not accept for provisioning.
func (s givenSecrets) checkType(p *spec.Provisioning) error {
	ref := p.Secret()
	if ref == nil || s.content[ref.Name] == nil {
		return nil // that it is missing is reported elsewhere
	}
	wanted := p.Type.SecretTypes()
	if slices.Contains(wanted, s.types[ref.Name]) {
		return nil
	}
	field := "spec.provisioning.userDataRef"
	if p.Type == spec.ProvisioningSysprepRef {
		field = "spec.provisioning.sysprepRef"
	}
	return &machineconfig.Error{Field: field, Reason: fmt.Sprintf("the Secret %s has the type %q; write type: %s into its manifest", ref.Name, s.types[ref.Name], wanted[0])}
}

// fill records in a configuration which contents its documents have, and returns only these.
func (s secrets) fill(r *runnerconfig.Runner) (secrets, error) {
	used := secrets{}
	var errs []error
	take := func(from *runnerconfig.CloudInitSource) bool {
		for _, key := range []string{from.Key, from.OtherKey} {
			content, ok := s[from.Secret][key]
			if key == "" || !ok {
				continue
			}
			from.ContentDigest = runnerconfig.ContentDigest(content)
			if used[from.Secret] == nil {
				used[from.Secret] = map[string][]byte{}
			}
			used[from.Secret][key] = content
			return true
		}
		return false
	}
	need := func(field string, from *runnerconfig.CloudInitSource, keys string) {
		errs = append(errs, &machineconfig.Error{Field: field, Reason: fmt.Sprintf(
			"the %s of the Secret %s was not found: say which file has its manifest, --secret FILE", keys, from.Secret)})
	}
	if c := r.CloudInit; c != nil {
		for _, from := range []struct {
			field  string
			source *runnerconfig.CloudInitSource
		}{{"metaDataFrom", c.MetaDataFrom}, {"userDataFrom", c.UserDataFrom}, {"networkConfigFrom", c.NetworkConfigFrom}} {
			if from.source == nil || take(from.source) {
				continue
			}
			field := "spec.cloudInit." + from.field
			if from.source.OtherKey != "" { // only provisioning has one
				field = "spec.provisioning.userDataRef"
			}
			need(field, from.source, "key "+from.source.Key)
		}
	}
	if files := r.Sysprep.Sources(); len(files) > 0 {
		found := false
		for _, f := range files {
			found = take(*f) || found
		}
		if !found {
			need("spec.provisioning.sysprepRef", *files[0], "key "+(*files[0]).Key+" or "+(*files[len(files)-1]).Key)
		}
	}
	return used, errors.Join(errs...)
}
