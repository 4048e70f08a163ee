package textout

import "testing"

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1023: "1023", 1024: "1Ki", 1536: "1.5Ki", 128 << 20: "128Mi", 1e9: "953.7Mi", 1 << 40: "1Ti", 1<<63 - 1: "8Ei",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got, want := Printable("a\x1b[2Jb\n\tc\u202e"), "a\\u001b[2Jb\n\tc\\u202e"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Cell("a\nb"), `a\u000ab`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
