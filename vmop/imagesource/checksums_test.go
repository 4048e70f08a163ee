package imagesource

import (
	"strings"
	"testing"
)

func TestChecksumLists(t *testing.T) {
	a, b := strings.Repeat("ab", 32), strings.Repeat("cd", 64)
	for _, c := range []struct{ list, want string }{
		{a + "  other.img\n" + a + "  x.img\n", "sha256:" + a},
		{a + " *x.img\n", "sha256:" + a},
		{"# x.img: 5 bytes\nSHA512 (x.img) = " + b + "\n", "sha512:" + b},
		{"abcd  x.img\n" + a + "  y.img", ""},
		{a + "  sub/x.img\nzz" + a[2:] + "  x.img", ""},
		{"", ""},
	} {
		if got := checksumOf(c.list, "x.img"); got != c.want {
			t.Errorf("%q: %s", c.list, got)
		}
	}
}
