// Package house holds the test that keeps the rules of the house: which package
// may import which, and what the pure packages must not use.
package house
