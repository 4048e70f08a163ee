package spec

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func poolKind() Kind {
	return typed(Kind{
		Name: KindVMPool, Plural: ResourceVMPools, noun: "pool",
		NewList: func() runtime.Object { return &VmPoolList{} },
		defaulted: func(t reflect.Type) []string {
			switch t {
			case reflect.TypeFor[VmPoolSpec]():
				return []string{"retention", "loginOnAssignment"}
			case reflect.TypeFor[PoolPermission]():
				return []string{"may"}
			}
			return nil
		},
	}, functions[*VmPool]{
		setDefaults: DefaultPool,
		validate:    ValidatePool,
		written:     func(pool *VmPool) { setSlice(&pool.Spec.Permissions) }, // the one list that a manifest must have
		object:      func(o *Object, pool *VmPool) { o.VmPool = pool },
	})
}

// NewVmPool is [NewVirtualMachine] for a pool.
func NewVmPool(namespace, name string) *VmPool {
	pool := &VmPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pool.SetGroupVersionKind(GroupVersion().WithKind(KindVMPool))
	return pool
}

// DefaultPool is [Default] for a pool.
func DefaultPool(pool *VmPool) {
	if pool == nil {
		return
	}
	setString(&pool.Spec.Retention, "PT1h")
	for i := range pool.Spec.Permissions {
		if p := &pool.Spec.Permissions[i]; p.May == nil {
			p.May = []PoolAction{PoolActionAccessConsole}
		}
	}
}

// ValidatePool is [Validate] for a pool.
func ValidatePool(pool *VmPool) field.ErrorList {
	if pool == nil {
		return missing(KindVMPool)
	}
	pool = pool.DeepCopy()
	DefaultPool(pool)
	var errs field.ErrorList
	meta := paths(true).at("metadata")
	if pool.Name == "" {
		errs = append(errs, requiredAt(meta.Child("name"), "a pool needs a name"))
	} else {
		errs = append(errs, invalid(meta.Child("name"), pool.Name, isSubdomain)...)
	}
	errs = append(errs, validateNamespace(&pool.ObjectMeta, true)...)

	path := paths(true).at("spec")
	errs = append(errs, validateLengths(reflect.ValueOf(&pool.Spec), poolBounds, path.path)...)
	if _, err := ParseRetention(pool.Spec.Retention); err != nil {
		errs = append(errs, invalidAt(path.Child("retention"), pool.Spec.Retention, err.Error()))
	}
	if pool.Spec.Permissions == nil {
		errs = append(errs, requiredAt(path.Child("permissions"), "write [] if nobody has any"))
	}
	for i, p := range pool.Spec.Permissions {
		at := path.Child("permissions").Index(i)
		errs = append(errs, validateSubject(p.User, p.Role, at)...)
		for j, a := range p.May {
			errs = append(errs, oneOf(at.Child("may").Index(j), a,
				PoolActionStart, PoolActionStop, PoolActionReset, PoolActionAccessConsole, PoolActionAll)...)
		}
	}
	return errs
}
