package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/tunnel"
)

const exportCommand = "export"

const exportUsage = `Usage: vmop-runner export [flags]

Exports one disk to one machine, by NBD within TLS, until TERM or INT: as the pod
of a VirtualMachineBlockDeviceAttachment does. A machine that is still connected
then is served on for the time of -linger. There is no machine in this process.

Flags:
`

type exportSettings struct {
	path, listen, certificates, client, runtime, qemu, logFormat string
	size                                                         int64
	linger                                                       time.Duration
}

func parseExport(args []string, stdout io.Writer) (exportSettings, error) {
	var s exportSettings
	f := flag.NewFlagSet("vmop-runner export", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.path, "disk", "", "`path` of the image or the block device")
	f.Int64Var(&s.size, "size", 0, "make an image of this many `bytes` where there has never been one")
	f.StringVar(&s.listen, "listen", ":10809", "`address` to listen on")
	f.StringVar(&s.certificates, "certificates", "", "`directory` with tls.crt and tls.key, by which the export is known")
	f.StringVar(&s.client, "client", "", "`fingerprint` of the key of the only machine that is served")
	f.StringVar(&s.runtime, "runtime", "", "`directory` of this export's alone, for sockets")
	f.DurationVar(&s.linger, "linger", 0, "how long to serve the machine on when the end was asked for")
	f.StringVar(&s.qemu, "qemu", "qemu-system-x86_64", "QEMU `executable`")
	f.StringVar(&s.logFormat, "log-format", "text", "text or json")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, exportUsage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return s, err
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q; see vmop-runner export -help", f.Arg(0))
	}
	for _, needed := range []struct{ flag, value string }{
		{"disk", s.path}, {"certificates", s.certificates}, {"client", s.client}, {"runtime", s.runtime},
	} {
		if err == nil && needed.value == "" {
			err = fmt.Errorf("-%s is missing; see vmop-runner export -help", needed.flag)
		}
	}
	if err == nil && s.logFormat != "text" && s.logFormat != "json" {
		err = fmt.Errorf("-log-format %q: want text or json", s.logFormat)
	}
	return s, err
}

func exportDisk(args []string, stdout, stderr io.Writer) int {
	s, err := parseExport(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return runner.ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		return runner.ExitUsage
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer runner.OnStopSignals(cancel)()
	if err := s.run(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		if err := writeTermination("", []byte(err.Error())); err != nil {
			fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		}
		return runner.ExitStart
	}
	return runner.ExitOK
}

func (s exportSettings) run(ctx context.Context, stdout io.Writer) error {
	own, err := tunnel.LoadIdentity(filepath.Join(s.certificates, "tls.crt"), filepath.Join(s.certificates, "tls.key"))
	if err != nil {
		return err
	}
	qemu, err := exec.LookPath(s.qemu)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.runtime, 0o700); err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	return runner.Export(ctx, l, runner.ExportOptions{
		QEMU: qemu, Path: s.path, Size: s.size, Runtime: s.runtime, Volumes: podVolumes, Own: own, Client: s.client,
		Linger: s.linger, Reporter: &runner.LogReporter{Out: stdout, JSON: s.logFormat == "json"},
	})
}
