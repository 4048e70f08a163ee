// Command apilint runs kube-api-linter's analyzers, which check Kubernetes' API
// conventions, over the files *_types.go of the packages that are named. The
// upstream program is all of golangci-lint with these analyzers in it; this one
// is the analyzers alone.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
	"sigs.k8s.io/yaml"
)

// settings says which rules are not checked, and why.
//
//go:embed apilint.yaml
var settings []byte

func main() {
	analyzers, err := configured()
	if err != nil {
		fmt.Fprintln(os.Stderr, "apilint.yaml:", err)
		os.Exit(2)
	}
	for _, a := range analyzers {
		onlyTypes(a)
	}
	multichecker.Main(analyzers...)
}

func configured() ([]*analysis.Analyzer, error) {
	var cfg config.GolangCIConfig
	if err := yaml.UnmarshalStrict(settings, &cfg); err != nil {
		return nil, err
	}
	return registry.DefaultRegistry().InitializeLinters(cfg.Linters, cfg.LintersConfig)
}

// onlyTypes makes a report on API types alone: the analyzers take every struct
// of a package for one.
func onlyTypes(a *analysis.Analyzer) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			if strings.HasSuffix(pass.Fset.Position(d.Pos).Filename, "_types.go") {
				report(d)
			}
		}
		return run(pass)
	}
}
