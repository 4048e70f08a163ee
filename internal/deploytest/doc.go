// Package deploytest installs what is in deploy/ on a real API server: that it
// is taken without a warning, that the operator's pods may run where only
// unprivileged ones may, and what exactly its accounts may do.
package deploytest
