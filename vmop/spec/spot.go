package spec

import "k8s.io/apimachinery/pkg/util/validation/field"

// +kubebuilder:object:generate=false

// spot is where in an object a value is. One of no paths is nowhere, and costs nothing: a
// validation first finds out whether there is anything to report.
type spot struct{ path *field.Path }

// paths is whether places are known.
type paths bool

func (p paths) at(name string, more ...string) spot {
	if !p {
		return spot{}
	}
	return spot{field.NewPath(name, more...)}
}

// Child, Index and Key are those of [field.Path].
func (p spot) Child(name string, more ...string) spot {
	if p.path == nil {
		return p
	}
	return spot{p.path.Child(name, more...)}
}

func (p spot) Index(i int) spot {
	if p.path == nil {
		return p
	}
	return spot{p.path.Index(i)}
}

func (p spot) Key(key string) spot {
	if p.path == nil {
		return p
	}
	return spot{p.path.Key(key)}
}

// String is never empty.
func (p spot) String() string { return p.path.String() }

func invalidAt(p spot, value any, detail string) *field.Error {
	return field.Invalid(p.path, value, detail)
}

func requiredAt(p spot, detail string) *field.Error { return field.Required(p.path, detail) }

func forbiddenAt(p spot, detail string) *field.Error { return field.Forbidden(p.path, detail) }

func notSupportedAt[T ~string](p spot, value any, allowed []T) *field.Error {
	return field.NotSupported(p.path, value, allowed)
}

func tooLongAt(p spot, value any, most int) *field.Error { return field.TooLong(p.path, value, most) }

func tooManyAt(p spot, has, most int) *field.Error { return field.TooMany(p.path, has, most) }

func duplicateAt(p spot, value any) *field.Error { return field.Duplicate(p.path, value) }

func typeInvalidAt(p spot, value any, detail string) *field.Error {
	return field.TypeInvalid(p.path, value, detail)
}
