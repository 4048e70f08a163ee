// Package zerovalues has no code but a test: it calls every exported function and
// method of the library with nil and zero values. What an importer forgets to fill in
// is an error, or nothing, and never a panic.
package zerovalues
