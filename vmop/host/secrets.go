package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// secrets are the contents of Secrets, by their names and keys.
type secrets map[string]map[string][]byte

// readSecrets reads the Secrets of a namespace from manifests. One without a namespace
// is taken, too. No error has anything of their content.
func readSecrets(files []string, namespace string) (secrets, error) {
	out := secrets{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read secrets: %w", err)
		}
		// What is wrong with other objects of the file is not told: it could be quoted.
		found, err := spec.Load(file, data, spec.Options{Lenient: true})
		if err != nil && len(found) == 0 {
			return nil, fmt.Errorf("read secrets: %s cannot be read as YAML or JSON", file)
		}
		for i := range found {
			o := &found[i]
			if o.Kind != names.KindSecret || o.APIVersion != "v1" || o.Namespace != "" && NamespaceOr(o.Namespace) != namespace {
				continue
			}
			if out[o.Name] != nil {
				return nil, fmt.Errorf("read secrets: %s: the Secret %s was there already", o.Position(""), o.Name)
			}
			if out[o.Name], err = secretContent(o.Raw); err != nil {
				return nil, fmt.Errorf("read secrets: %s: the Secret %s: %w", o.Position(""), o.Name, err)
			}
		}
	}
	return out, nil
}

func secretContent(raw []byte) (map[string][]byte, error) {
	doc, err := yamljson.ToJSON(raw)
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	var s struct {
		Data       map[string][]byte `json:"data"`
		StringData map[string]string `json:"stringData"`
	}
	if json.Unmarshal(doc, &s) != nil {
		return nil, errors.New("want base64 under data and strings under stringData")
	}
	out := map[string][]byte{}
	for k, v := range s.Data {
		out[k] = v
	}
	for k, v := range s.StringData { // which the API server puts over data
		out[k] = []byte(v)
	}
	return out, nil
}

// fill notes in a configuration which contents its documents have, and returns these
// alone.
func (s secrets) fill(c *runnerconfig.CloudInit) (secrets, error) {
	if c == nil {
		return nil, nil
	}
	used := secrets{}
	var errs []error
	for _, from := range []struct {
		field  string
		source *runnerconfig.CloudInitSource
	}{{"metaDataFrom", c.MetaDataFrom}, {"userDataFrom", c.UserDataFrom}, {"networkConfigFrom", c.NetworkConfigFrom}} {
		if from.source == nil {
			continue
		}
		content, ok := s[from.source.Secret][from.source.Key]
		if !ok {
			errs = append(errs, &machineconfig.Error{Field: "spec.cloudInit." + from.field, Reason: fmt.Sprintf(
				"the key %s of the Secret %s is in no file of secrets: say which file has its manifest, --secret FILE", from.source.Key, from.source.Secret)})
			continue
		}
		from.source.ContentDigest = runnerconfig.ContentDigest(content)
		if used[from.source.Secret] == nil {
			used[from.source.Secret] = map[string][]byte{}
		}
		used[from.source.Secret][from.source.Key] = content
	}
	return used, errors.Join(errs...)
}
