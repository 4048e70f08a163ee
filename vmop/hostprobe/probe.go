package hostprobe

import (
	"context"
	"fmt"
	"sync"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// Options configure [Probe]. The zero value is useful.
type Options struct {
	// QEMU is the path of qemu-system-x86_64. Empty searches PATH and the distributions'
	// directories.
	QEMU string
	// CacheDir is a directory for the results, which is created if missing; empty caches nothing.
	// QEMU's answers are reused for the same binary (path, size, modification time, inode) with the
	// same module directories, and a working KVM until the host boots. Files are searched each
	// time. Errors of the cache are ignored.
	CacheDir string
}

// Result is the result of [Probe].
type Result struct {
	Host qemucmd.Host
	// KVM explains Host.KVM.
	KVM KVM
	// Notes explain what is missing, "KVM: …" first. They are for display.
	Notes []string
}

// Probe examines the host. A host without KVM, firmware or swtpm is no error: [qemucmd.Build] finds
// whether a machine needs them.
//
// The error is a [*NotFoundError] if there is no QEMU.
func Probe(ctx context.Context, o Options) (Result, error) {
	qemu, err := findQEMU(o.QEMU)
	if err != nil {
		return Result{}, err
	}
	identity, err := identify(qemu)
	if err != nil {
		return Result{}, fmt.Errorf("examine %s: %w", qemu, err)
	}
	cache := openCache(o.CacheDir, identity)

	var r Result
	var kvm KVM
	var wg sync.WaitGroup
	wg.Go(func() { kvm = checkKVM(ctx, qemu, cache) })
	r.Host, err = cache.facts()
	if err != nil {
		r.Host, err = askQEMU(ctx, qemu)
	}
	wg.Wait()
	if err != nil {
		return Result{}, fmt.Errorf("ask %s what it offers: %w", qemu, err)
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err // it may be why the KVM check ended
	}
	if err := cache.store(r.Host, kvm); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("cache: %v", err))
	}

	r.Host.QEMU = qemu
	r.Host.KVM, r.KVM = kvm.Works, kvm
	r.Host.Firmware = findFirmware("/")
	r.Host.SWTPM = findExecutable("swtpm", "/usr/bin/swtpm", "/usr/local/bin/swtpm")
	r.Host.BridgeHelper = findBridgeHelper()
	r.Host.VirtioFSD = findVirtioFSD(ctx)
	r.Notes = append(missing(r.Host, kvm), r.Notes...)
	return r, nil
}

func missing(h qemucmd.Host, kvm KVM) []string {
	var notes []string
	if !kvm.Works {
		notes = append(notes, "KVM: "+kvm.Message)
	}
	for _, n := range qemucmd.ServerNeeds() {
		if !h.Serves(n.Protocol) {
			notes = append(notes, n.Protocol.Row().Title+": "+n.Lacks)
		}
	}
	if len(h.Firmware) == 0 {
		notes = append(notes, "UEFI: no firmware images found (package ovmf or edk2-ovmf)")
	}
	if h.SWTPM == "" {
		notes = append(notes, "TPM: no swtpm found (package swtpm)")
	}
	return notes
}
