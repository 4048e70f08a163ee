// Package yamljson converts between YAML and JSON without losing what the usual
// route through Go maps loses: the order of keys, the difference between 1 and
// 1.0, and integers beyond 2^53.
//
// [ToJSON] reads by the core schema of YAML 1.2, whose only booleans are true and false.
// Manifests and VM-Operator's configurations are read by YAML 1.1, which has more of them:
// [Truth] is their one table.
package yamljson
