// Package debpackage has no code but a test: it makes the Debian package that
// scripts/deb makes for a release, and looks at what is in it.
package debpackage
