package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/vmop/live"
)

// The files of the display secret, as VM-Operator mounts them.
const (
	displayPasswordFile = "display-password"
	passwordExpiryFile  = "password-expiry"
)

func hasDisplayPassword(dir string) (bool, error) {
	_, found, err := readSecret(dir, displayPasswordFile)
	return found, err
}

func readSecret(dir, name string) (value string, found bool, err error) {
	if dir == "" {
		return "", false, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("display secret: %w", err)
	}
	return string(data), true, nil
}

type displaySecret struct {
	password string
	seen     live.DisplaySecret
}

func (e *Engine) readDisplaySecret() displaySecret {
	var s displaySecret
	password, found, err := readSecret(e.o.DisplaySecretDir, displayPasswordFile)
	if err == nil && found && password != "" { // an empty password is not written yet, or none
		sum := sha256.Sum256([]byte(password))
		s.password, s.seen.Password = password, hex.EncodeToString(sum[:])
		s.seen.Long = len(password) > live.VNCPasswordBytes
		// Secrets created with echo end in a newline, which QEMU refuses.
		s.seen.Expiry, _, err = readSecret(e.o.DisplaySecretDir, passwordExpiryFile)
		s.seen.Expiry = strings.TrimSpace(s.seen.Expiry)
	}
	if err != nil {
		s.seen.Problem = err.Error()
	}
	return s
}
