// Package textout writes what programs show to people: tables as kubectl writes them, sizes
// and ages, values as JSON and YAML, and nothing that could steer a terminal.
package textout
