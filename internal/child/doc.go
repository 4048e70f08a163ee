// Package child runs programs that do not outlive the test that started them,
// however it ends.
package child
