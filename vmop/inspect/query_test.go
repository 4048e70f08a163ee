package inspect

import "testing"

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"/srv/a.img": "/srv/a.img",
		`json:{"driver":"raw","file":{"driver":"file","filename":"/srv/a,b.img"}}`: "/srv/a,b.img",
		`json:{"driver":"https","url":"https://example.org/cd.iso"}`:               "https://example.org/cd.iso",
		`json:{"driver":"null-co"}`:                                                `json:{"driver":"null-co"}`,
		`json:{`:                                                                   `json:{`,
	} {
		if got := fileName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
