// Package yamljson converts between YAML and JSON without losing what the usual
// route through Go maps loses: the order of keys, the difference between 1 and
// 1.0, and integers beyond 2^53.
package yamljson
