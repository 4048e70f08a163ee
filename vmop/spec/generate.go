package spec

// The generator is controller-gen of the module tools/dev; `make generate`
// builds it there and puts it in front of PATH, so that importers of this
// module never see its dependencies.
//
//go:generate controller-gen object paths=.
//go:generate controller-gen crd:generateEmbeddedObjectMeta=true paths=. output:crd:dir=../../deploy/crds
//go:generate go run ./internal/crdfix ../../deploy/crds/vmoperator.jdrupes.org_vms.yaml
//go:generate go run ./internal/crdlist ../../deploy/crds
