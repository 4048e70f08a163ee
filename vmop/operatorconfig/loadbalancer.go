package operatorconfig

import (
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"k8s.io/apimachinery/pkg/util/validation"
)

// loadBalancer reads loadBalancerService: true or false, or the metadata of the services.
// VM-Operator accepts true and then fails; here it is the same as an empty mapping.
func loadBalancer(p *parser, v value) {
	if v.isBool() {
		switch b, ok := p.truth(v); {
		case ok && b:
			p.config.Settings.LoadBalancer = &objects.LoadBalancer{}
		case ok:
			p.config.Settings.LoadBalancer = nil
		}
		return
	}
	if !v.isMapping() {
		p.fault(v, "found %s, want true, false or a mapping with labels and annotations", v.kind())
		return
	}
	lb := &objects.LoadBalancer{}
	p.config.Settings.LoadBalancer = lb
	p.fields(v, map[string]option{
		"labels":      func(p *parser, v value) { lb.Labels = p.metadata(v, true) },
		"annotations": func(p *parser, v value) { lb.Annotations = p.metadata(v, false) },
	})
}

// metadata reads labels or annotations. As in a manifest, null means that there is none.
func (p *parser) metadata(v value, labels bool) map[string]string {
	if !v.isMapping() {
		p.fault(v, "found %s, want a mapping", v.kind())
		return nil
	}
	var out map[string]string
	for _, e := range p.entries(v) {
		if !p.valid(e, e.key, "a key such as example.org/name", len(validation.IsQualifiedName(e.key)) == 0) || e.isNull() {
			continue
		}
		s, ok := p.text(e)
		if !ok || labels && !p.valid(e, s, "the value of a label: letters, digits, dashes, dots and underscores, at most 63", len(validation.IsValidLabelValue(s)) == 0) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[e.key] = s
	}
	return out
}
