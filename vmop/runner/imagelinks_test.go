package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/live"
)

// Who may put images into the repository cannot have guests read other files of the
// pod, be it from the start or while the machine runs; links from one image to another
// are followed.
func TestLinksOutOfTheImageRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repository, token := filepath.Join(dir, "repository"), filepath.Join(dir, "token")
	if err := os.Mkdir(repository, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, token, strings.Repeat("secret ", 1<<10))
	put(t, filepath.Join(repository, "debian-13.iso"), string(disc("a")))
	latest, beside, absolute := filepath.Join(repository, "latest.iso"), filepath.Join(repository, "beside.iso"), filepath.Join(repository, "absolute.iso")
	for link, to := range map[string]string{latest: "debian-13.iso", beside: "../token", absolute: token} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	confined := func(o *Options) { o.Images = []string{repository} }
	const refusal = "a symbolic link leads out of"
	for _, image := range []string{beside, absolute} {
		c := cdConfig(t, image)
		if _, err := start(t, c, testDirs(t), confined).wait(t); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("a CD from %s: %v", image, err)
		}
		c = testConfig(t)
		c.Runner.VM.KernelBoot.Initrd = image
		if _, err := start(t, c, testDirs(t), confined).wait(t); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("an initrd from %s: %v", image, err)
		}
	}
	c := cdConfig(t, latest)
	r := start(t, c, testDirs(t), confined)
	console := r.console(t)
	discIn(t, console, "sr0", disc("a"))
	r.reconfigure(t, &c, insert(0, beside))
	r.until(t, "the medium is refused", func(s State) bool {
		return strings.Contains(condition(s, live.MediaChanged).Message, refusal)
	})
	_, files := r.held(t, r.tools(t))
	for _, f := range files {
		if f == token {
			t.Error("QEMU has opened the token")
		}
	}
	r.cancel()
	r.wait(t)
}
