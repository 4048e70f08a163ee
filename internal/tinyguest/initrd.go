package tinyguest

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed guest/*.c guest/*.h
var guestSources embed.FS

// compileFlags give a small static program without a C library, reproducibly: no build ID, no
// symbols.
var compileFlags = []string{
	"-std=gnu11", "-Os", "-Wall", "-Wextra", "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie",
	"-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fcf-protection=none",
	// Otherwise the compiler turns memset's loop into a call of memset.
	"-fno-tree-loop-distribute-patterns",
	"-ffunction-sections", "-fdata-sections", "-s",
	"-Wl,--gc-sections,--build-id=none,-z,norelro,-z,noseparate-code",
}

// guestKey is the cache key of buildGuest's result.
func guestKey(s source) string {
	parts := append([]string{"guest 1", kernelKey(s)}, compileFlags...)
	names, _ := fs.Glob(guestSources, "guest/*") // the pattern is valid
	for _, name := range names {
		data, _ := guestSources.ReadFile(name) // an embedded file cannot fail to be read
		parts = append(parts, name, string(data))
	}
	return key(parts...)
}

func compileInit(ctx context.Context, dir string) ([]byte, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return nil, fmt.Errorf("gcc is needed to build it, \"make deps\" installs it: %w", err)
	}
	work, err := os.MkdirTemp(dir, ".init-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	names, err := fs.Glob(guestSources, "guest/*")
	if err != nil {
		return nil, err
	}
	argv := append([]string{"gcc"}, compileFlags...)
	argv = append(argv, "-o", "init")
	for _, name := range names {
		data, err := guestSources.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		if err := os.WriteFile(filepath.Join(work, base), data, 0o600); err != nil {
			return nil, err
		}
		if filepath.Ext(base) == ".c" {
			argv = append(argv, base)
		}
	}
	if _, err := run(ctx, work, argv...); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(work, "init"))
}

// packInitrd packs the initial file system from the init and the modules in a folder.
func packInitrd(init []byte, modulesDir string) ([]byte, error) {
	entries := []entry{
		{name: "dev", mode: modeDir | 0o755},
		// The kernel opens it for process 1 before anything is mounted.
		{name: "dev/console", mode: modeChar | 0o600, major: 5, minor: 1},
		{name: "init", mode: modeFile | 0o755, data: init},
		{name: "modules", mode: modeDir | 0o755},
		{name: "proc", mode: modeDir | 0o755},
		{name: "sbin", mode: modeDir | 0o755},
		{name: "sbin/modprobe", mode: modeSymlink | 0o777, data: []byte("/init")},
		{name: "sys", mode: modeDir | 0o755},
	}
	files, err := os.ReadDir(modulesDir)
	if err != nil {
		return nil, err
	}
	var modules []module
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(modulesDir, f.Name()))
		if err != nil {
			return nil, err
		}
		m, err := parseModule(moduleName(f.Name()), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		modules = append(modules, m)
		entries = append(entries, entry{name: "modules/" + f.Name(), mode: modeFile | 0o644, data: data})
	}
	entries = append(entries, entry{name: "modules.list", mode: modeFile | 0o644, data: []byte(moduleList(modules))})
	return writeCPIO(entries), nil
}
