// Package spectest generates virtual machines, and objects of the other kinds of the
// group, for property tests: of this module, and of programs that use it.
//
// # Stability
//
// It is for tests, and changes with what they test.
package spectest
