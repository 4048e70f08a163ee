package machineconfig

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestImageLocation(t *testing.T) {
	const repo = ImageRepositoryDir
	for _, c := range []struct{ name, want string }{
		{"", ""},
		{"image.iso", repo + "/image.iso"},
		{"./sub//image.iso", repo + "/sub/image.iso"},
		{"my%20image.iso", repo + "/my image.iso"},
		{"my image.iso", repo + "/my image.iso"},
		{"100%.iso", repo + "/100%.iso"},
		{"a?b#c,d=e.iso", repo + "/a?b#c,d=e.iso"},
		{"c:d.iso", repo + "/c:d.iso"},
		{"%2e%2e/secret", repo + "/%2e%2e/secret"},
		{"a%0Ab", repo + "/a%0Ab"},
		{"a%ffb", repo + "/a%ffb"},
		{"..iso", repo + "/..iso"},
		{"/srv/cd.iso", "/srv/cd.iso"},
		{"/srv/../cd.iso", "/cd.iso"},
		{"file:///srv/my%20cd.iso", "/srv/my cd.iso"},
		{"file:/srv/cd.iso", "/srv/cd.iso"},
		{"file://localhost/srv/cd.iso", "/srv/cd.iso"},
		{"https://test.com/test.iso", "https://test.com/test.iso"},
		{"HTTP://test.com/../a b", "HTTP://test.com/../a b"},
	} {
		got, err := imageLocation(c.name, repo, true)
		if err != nil || got != c.want {
			t.Errorf("imageLocation(%q) = %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{"..", "../x", "a/../../x", "a\nb", "a\xffb", "http:", "https://", "file://host/x", "file:x", "nbd://host/export"} {
		if got, err := imageLocation(bad, repo, true); err == nil {
			t.Errorf("imageLocation(%q) = %q, want an error", bad, got)
		}
	}
	if got, err := imageLocation("https://host/vmlinuz", repo, false); err == nil {
		t.Errorf("a kernel at a URL became %q", got)
	}
	if got, err := imageLocation("cd.iso", "", true); err == nil {
		t.Errorf("without a repository cd.iso became %q", got)
	}
}

func checkImageStaysInside(t *rapid.T) {
	name := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`(\.|/|%2[eEfF]|[a-z:]){0,12}`),
	).Draw(t, "name")
	got, err := imageLocation(name, ImageRepositoryDir, true)
	if err != nil || got == "" || strings.HasPrefix(strings.ToLower(got), "http") {
		return
	}
	if !path.IsAbs(got) || path.Clean(got) != got {
		t.Fatalf("%q became %q", name, got)
	}
	lower := strings.ToLower(name)
	if absolute := strings.HasPrefix(lower, "/") || strings.HasPrefix(lower, "%2f") || strings.HasPrefix(lower, "file:"); !absolute &&
		got != ImageRepositoryDir && !strings.HasPrefix(got, ImageRepositoryDir+"/") {
		t.Fatalf("%q left the repository: %q", name, got)
	}
}

func TestImageStaysInside(t *testing.T) { rapid.Check(t, checkImageStaysInside) }

func FuzzImageStaysInside(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkImageStaysInside)) }
