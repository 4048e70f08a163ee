package live_test

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"pgregory.net/rapid"
)

func TestChangedAnswers(t *testing.T) {
	with := func(secret, one, two string) *runnerconfig.Config {
		c := &runnerconfig.Config{}
		c.Runner.Sysprep = &runnerconfig.Sysprep{
			Unattend: &runnerconfig.CloudInitSource{Secret: secret, Key: "a", ContentDigest: one}, Autounattend: &runnerconfig.CloudInitSource{Secret: secret, Key: "b", ContentDigest: two},
		}
		return c
	}
	changed, gone := []live.Document{{Name: "sysprep"}}, []live.Document{{Name: "sysprep", Missing: true}}
	for _, x := range []struct {
		was, is *runnerconfig.Config
		want    []live.Document
	}{
		{with("s", "1", ""), with("s", "1", ""), nil},
		{with("s", "1", ""), with("s", "2", ""), changed},
		{with("s", "1", ""), with("s", "1", "3"), changed},
		{with("s", "1", "3"), with("s", "", "3"), changed},
		{with("s", "1", ""), with("s", "", ""), gone},
		{with("s", "", ""), with("s", "1", ""), nil},
		{with("s", "1", ""), with("t", "2", ""), nil},
		{with("s", "1", ""), &runnerconfig.Config{}, nil},
	} {
		if got := live.ChangedDocuments(x.was, x.is); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %+v, want %+v", x.is.Runner.Sysprep, got, x.want)
		}
	}
}

// A document has changed if it had a content and has another one, or none, and is still
// that of the same key; what is in it, and its digest, are not told.
func TestChangedDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"metaData", "userData", "networkConfig"}
		draw := func(what string) (*runnerconfig.Config, [3]*runnerconfig.CloudInitSource) {
			c := &runnerconfig.Config{}
			var all [3]*runnerconfig.CloudInitSource
			if rapid.IntRange(0, 9).Draw(t, what) == 0 {
				return c, all
			}
			c.Runner.CloudInit = &runnerconfig.CloudInit{}
			for i := range all {
				if rapid.IntRange(0, 3).Draw(t, what) == 0 {
					continue
				}
				all[i] = &runnerconfig.CloudInitSource{
					Secret: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "secret"), Key: rapid.SampledFrom([]string{"k", "k", "l"}).Draw(t, "key"),
					ContentDigest: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "digest"),
				}
			}
			c.Runner.CloudInit.MetaDataFrom, c.Runner.CloudInit.UserDataFrom, c.Runner.CloudInit.NetworkConfigFrom = all[0], all[1], all[2]
			return c, all
		}
		started, was := draw("started")
		now, is := draw("now")
		var want []live.Document
		for i, name := range names {
			if was[i] != nil && is[i] != nil && was[i].Secret == is[i].Secret && was[i].Key == is[i].Key && was[i].ContentDigest != "" && was[i].ContentDigest != is[i].ContentDigest {
				want = append(want, live.Document{Name: name, Missing: is[i].ContentDigest == ""})
			}
		}
		if got := live.ChangedDocuments(started, now); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		if got := live.ChangedDocuments(started, started); len(got) > 0 {
			t.Fatalf("nothing was changed: %v", got)
		}
	})
}
