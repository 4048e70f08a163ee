package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// startedClass is what a pod records of the class that it was made with.
type startedClass struct {
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// CoreFraction is that of the class, if the manifest had none.
	CoreFraction string `json:"coreFraction,omitempty"`
	// Spec lacks the sizes.
	Spec spec.VirtualMachineClassSpec `json:"spec"`
}

func (c *startedClass) applyTo(s *spec.VirtualMachineSpec) {
	c.Spec.Apply(s)
	if s.CoreFraction == "" && !s.NamesCompute() {
		s.CoreFraction = c.CoreFraction
	}
}

type startedManifest struct {
	Generation int64 `json:"generation"`
	// Class must follow the generation, where it is searched for.
	Class *startedClass            `json:"class,omitempty"`
	Spec  *spec.VirtualMachineSpec `json:"spec"`
}

func started(vm *spec.VirtualMachine, class *startedClass) string {
	data, err := json.Marshal(startedManifest{Generation: vm.Generation, Class: class, Spec: concealed(&vm.Spec)})
	if err != nil {
		// A RawExtension without valid JSON, which spec.Validate refuses.
		return ""
	}
	return string(data)
}

func startedWith(text string) *startedManifest {
	var then startedManifest
	if json.Unmarshal([]byte(text), &then) != nil || then.Spec == nil {
		return nil
	}
	return &then
}

// startedAnew returns the record for a pod that another machine takes over: generations count
// anew, so that the specification is compared with that of the start. The rest stays, whatever a
// later version wrote; what cannot be decoded is kept.
func startedAnew(text string) string {
	var then struct {
		Generation int64           `json:"generation"`
		Class      json.RawMessage `json:"class,omitempty"`
		Spec       json.RawMessage `json:"spec"`
	}
	if json.Unmarshal([]byte(text), &then) != nil {
		return text
	}
	then.Generation = 0
	data, err := json.Marshal(then)
	if err != nil {
		return text
	}
	return string(data)
}

// concealed returns a specification without what may be secret and what never waits for a
// restart. Documents are replaced by digests, so that a change still shows. It shares all else
// with the original and must not be changed.
func concealed(s *spec.VirtualMachineSpec) *spec.VirtualMachineSpec {
	shown := *s
	c := &shown
	c.Permissions, c.Pools, c.LoadBalancerService = nil, nil, nil
	if c.LoggingProperties != "" {
		c.LoggingProperties = digest([]byte(c.LoggingProperties))
	}
	if s.CloudInit != nil {
		i := *s.CloudInit
		i.MetaData = maps.Clone(i.MetaData)
		for k, v := range i.MetaData {
			i.MetaData[k] = digest([]byte(v))
		}
		i.UserData, i.NetworkConfig = digested(i.UserData), digested(i.NetworkConfig)
		c.CloudInit = &i
	}
	if s.Provisioning != nil && s.Provisioning.UserData != "" {
		p := *s.Provisioning
		p.UserData = digest([]byte(p.UserData))
		c.Provisioning = &p
	}
	return c
}

func digested(raw *runtime.RawExtension) *runtime.RawExtension {
	if raw == nil {
		return nil
	}
	data, err := manifest.RawJSON(raw)
	if err != nil || len(data) == 0 {
		return nil
	}
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"sha256":%q}`, digest(data))}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
