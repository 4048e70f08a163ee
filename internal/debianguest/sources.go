package debianguest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// release is the Debian release of the guest, and of the host.
const release = "bookworm"

type source struct {
	site, suite string
}

// hostSources asks the host's apt for its Debian mirrors, so that what is built of a release comes
// from the same mirrors. The first source is the release itself.
func hostSources(ctx context.Context, of string) ([]source, error) {
	cmd := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask apt for its sources: %w", err)
	}
	sources := debianSources(string(out))
	if len(sources) == 0 {
		return nil, fmt.Errorf("this host's apt has no source for Debian %s main: it can only be built on a Debian 12 host", release)
	}
	return ofRelease(sources, of), nil
}

// debianSources selects from lines of site, suite and component those of the release, its updates
// and its security fixes. Without the release itself there are none.
func debianSources(targets string) []source {
	var base, others []source
	seen := map[source]bool{}
	for line := range strings.Lines(targets) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "main" {
			continue
		}
		s := source{fields[0], fields[1]}
		if seen[s] {
			continue
		}
		seen[s] = true
		switch s.suite {
		case release:
			base = append(base, s)
		case release + "-updates", release + "-security":
			others = append(others, s)
		}
	}
	if len(base) == 0 {
		return nil
	}
	return append(base, others...)
}

// ofRelease returns the sources of another release: each mirror has the same suites of every
// maintained release.
func ofRelease(sources []source, of string) []source {
	out := make([]source, len(sources))
	for i, s := range sources {
		out[i] = source{s.site, of + strings.TrimPrefix(s.suite, release)}
	}
	return out
}

func aptList(sources []source) string {
	var b strings.Builder
	for _, s := range sources {
		fmt.Fprintf(&b, "deb %s %s main\n", s.site, s.suite)
	}
	return b.String()
}
