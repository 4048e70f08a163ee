// Package sourcemutants holds faults of the source, each of which a test must notice:
// guards that are left out, comparisons that are turned round. A mutant of a plan
// shows that a promise is looked at; one of the source shows that the code which
// keeps the promise is the reason why it holds.
//
// `make mutants` builds each with the go command's overlay, so that no file of the
// tree is written, and runs the test that has to fail with the words that it has to
// say. `make test` sees to it that each of them still fits the source.
package sourcemutants
