package main

import (
	"context"
	"path/filepath"

	"github.com/vmop/sdk/vmop/hostprobe"
)

func (p *program) probe(ctx context.Context) (hostprobe.Result, error) {
	g := p.begin("asking QEMU what this host offers")
	defer g.end()
	return hostprobe.Probe(ctx, p.probeOptions())
}

func (p *program) probeOptions() hostprobe.Options {
	o := hostprobe.Options{}
	if dir := p.cacheDir(); dir != "" {
		o.CacheDir = filepath.Join(dir, "vmop", "hostprobe")
	}
	return o
}

func (p *program) cacheDir() string {
	if dir := p.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := p.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache")
	}
	return ""
}
