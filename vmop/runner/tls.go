package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// withoutAuthority creates a directory for display certificates that come without an authority's,
// as from cert-manager for issuers such as ACME's. QEMU and SPICE do not start without that file,
// but only use it for clients with certificates: a copy of the display's own replaces it. The key
// stays where it is. The directory is empty if none is needed.
func (e *Engine) withoutAuthority() (string, error) {
	d := e.o.Config.Runner.VM.Display
	if d == nil || d.TLS == nil {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(d.TLS.Dir, qemucmd.TLSCAFile)); !errors.Is(err, fs.ErrNotExist) {
		return "", nil // other problems are reported later
	}
	dir := filepath.Join(e.o.Directories.Runtime, "display-tls")
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("certificates of the display: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("certificates of the display: %w", err)
	}
	for name, of := range map[string]string{
		qemucmd.TLSCertFile: qemucmd.TLSCertFile, qemucmd.TLSKeyFile: qemucmd.TLSKeyFile, qemucmd.TLSCAFile: qemucmd.TLSCertFile,
	} {
		if err := os.Symlink(filepath.Join(d.TLS.Dir, of), filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("certificates of the display: %w", err)
		}
	}
	return dir, nil
}

func (e *Engine) certificateDigest() string {
	d := e.o.Config.Runner.VM.Display
	if d == nil || d.TLS == nil {
		return ""
	}
	var all []byte
	for _, name := range []string{qemucmd.TLSCertFile, qemucmd.TLSKeyFile, qemucmd.TLSCAFile} {
		data, err := readBounded(filepath.Join(d.TLS.Dir, name), maxDocument)
		if err != nil && name != qemucmd.TLSCAFile {
			return ""
		}
		all = append(append(all, runnerconfig.ContentDigest(data)...), ' ')
	}
	return runnerconfig.ContentDigest(all)
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d KiB", path, most>>10)
	}
	return data, err
}
