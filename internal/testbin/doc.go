// Package testbin finds the real programs and files that tests work with:
// QEMU, swtpm, UEFI firmware, the tiny guest. A test that misses one fails with
// the command that installs it; it never skips, because a skipped test proves
// nothing and nobody notices.
package testbin
