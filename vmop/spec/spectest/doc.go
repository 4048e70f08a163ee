// Package spectest generates virtual machines for property tests: of this
// module, and of programs that use it.
package spectest
