// Package e2e runs machines where they are meant to run: in the pods of a real
// node, from the images that the recipes in deploy/images lead to. Its tests need
// root and have the build tag e2e: "make test-e2e".
package e2e
