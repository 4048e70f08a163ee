// Package specmistakes has mistakes in objects of the API group, one in each: for the
// tests of the validation, and of the definitions that an API server refuses objects by.
package specmistakes
