// Package house holds the tests that keep the rules of the house: which package
// may import which, what the pure packages must not use, and what the library exports.
package house
