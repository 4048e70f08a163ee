package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const templateName = "machine.tmpl"

// LoadTemplate reads the custom machine type that a configuration names, from dir unless the name
// is absolute. The first start keeps a copy in dataDir, which later starts use unless the
// configuration asks to update it. The standard machine is the empty string.
func LoadTemplate(c *runnerconfig.Config, dir, dataDir string) (string, error) {
	if c == nil {
		return "", nil
	}
	name := c.Runner.Template
	if qemucmd.IsStandardTemplate(name) {
		return "", nil
	}
	if err := qemucmd.CheckTemplateName(name); err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	if !filepath.IsAbs(name) {
		if !filepath.IsLocal(name) {
			return "", fmt.Errorf("template %q leads out of %s", name, dir)
		}
		name = filepath.Join(dir, name)
	}
	kept := filepath.Join(dataDir, templateName)
	if !c.Runner.UpdateTemplate {
		text, err := os.ReadFile(kept)
		if err == nil {
			return string(text), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("template: %w", err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	if err := makeDataDir(dataDir); err != nil {
		return "", err
	}
	if err := atomicfile.Replace(kept, text); err != nil {
		return "", fmt.Errorf("keep the template: %w", err)
	}
	return string(text), nil
}
