// Package kindtest has what tests of all kinds of the API group need of each: objects that
// are drawn, and mistakes, one in each object, for the tests of the validation and of the
// definitions that an API server refuses objects by.
package kindtest
