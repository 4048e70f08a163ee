// Package spectest generates virtual machines for property tests: of this
// module, and of programs that use it.
//
// # Stability
//
// It is for tests, and changes with what they test.
package spectest
