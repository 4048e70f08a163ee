// Package deps pins what is not imported yet.
package deps

import (
	_ "github.com/digitalocean/go-qemu/qmp"
	_ "github.com/digitalocean/go-qemu/qmp/raw"
	_ "github.com/diskfs/go-diskfs"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/urfave/cli/v2"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/client-go/dynamic"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/yaml"
	_ "go.yaml.in/yaml/v3"
	_ "github.com/creack/pty"
)
