package spectest

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/plainjson"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// MachineName generates names that a machine may have.
func MachineName() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z]([a-z0-9-]{0,61}[a-z0-9])?`)
}

// Label generates DNS labels, the names of disks, storage classes and volumes.
func Label() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
}

// Labels generates labels of objects.
func Labels() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(
		rapid.StringMatching(`([a-z]{1,8}\.example\.org/)?[a-zA-Z0-9]([a-zA-Z0-9._-]{0,10}[a-zA-Z0-9])?`),
		rapid.StringMatching(`([a-zA-Z0-9]([a-zA-Z0-9._-]{0,10}[a-zA-Z0-9])?)?`), 0, 3)
}

// Text generates one-line texts that are free in form: with spaces, commas,
// quotes, equals signs, backslashes, colons and Unicode, and such that YAML
// would read as something else.
func Text() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"yes", "on", "null", "~", "0755", "1e3", "{}", "- a", "a: b", "#x", "&a", "*a", "!t", "%y", "---",
			`a,b=c,,d`, `"quoted"`, `it's`, `back\slash`, "  spaces  ", "grün", "日本語", "🖥", "<<",
		}),
		rapid.StringOfN(rapid.OneOf(
			rapid.RuneFrom([]rune(`abcXYZ019 ,;=:"'\/#&*!|>%@{}[]<>?+-_.~$()`)),
			rapid.RuneFrom([]rune("äßéλЖ中文🖥\u00a0\u200b")),
		), 1, 24, -1),
	)
}

// File generates names of files: relative, or absolute, with awkward
// characters, never leaving their directory.
func File() *rapid.Generator[string] {
	segment := rapid.Custom(func(t *rapid.T) string {
		s := strings.ReplaceAll(Text().Draw(t, "segment"), "/", "_")
		s = strings.ReplaceAll(s, ":", "_") // or it may be taken for a URL
		if s == "." || s == ".." {
			return "dot"
		}
		return s
	})
	return rapid.Custom(func(t *rapid.T) string {
		name := strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "segments"), "/")
		if rapid.Bool().Draw(t, "absolute") {
			return "/" + name
		}
		return name
	})
}

// ImageName generates what a CD drive may have in it, an empty string included.
func ImageName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Just(""),
		File(),
		rapid.StringMatching(`https?://[a-z]{1,8}\.example\.org(:[1-9][0-9]{1,3})?/[a-z0-9,=&?+]{0,12}\.iso`),
		rapid.StringMatching(`file:(//)?/srv/[a-z0-9,=]{1,12}\.iso`),
	)
}

// RawObject generates JSON objects with any content.
func RawObject() *rapid.Generator[*runtime.RawExtension] {
	return rapid.Custom(func(t *rapid.T) *runtime.RawExtension {
		members := rapid.MapOfN(Text(), rapid.OneOf(
			rapid.Map(Text(), func(s string) string { return string(plainjson.Quote(s)) }),
			rapid.SampledFrom([]string{"1", "1.50", "-0.25", "1e3", "9007199254740993", "true", "null", "[]", "{}", `["a",{"b":1}]`}),
		), 0, 4).Draw(t, "members")
		var parts []string
		for key, value := range members {
			parts = append(parts, string(plainjson.Quote(key))+":"+value)
		}
		// Maps have no order of their own, and a test must be repeatable.
		slices.Sort(parts)
		return &runtime.RawExtension{Raw: []byte("{" + strings.Join(parts, ",") + "}")}
	})
}

// Toleration generates tolerations of all shapes.
func Toleration() *rapid.Generator[corev1.Toleration] {
	return rapid.Custom(func(t *rapid.T) corev1.Toleration {
		out := corev1.Toleration{
			Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}).Draw(t, "operator"),
			Effect:   rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}).Draw(t, "effect"),
		}
		if out.Operator != corev1.TolerationOpExists || rapid.Bool().Draw(t, "has key") {
			out.Key = Label().Draw(t, "key")
		}
		if out.Operator != corev1.TolerationOpExists && rapid.Bool().Draw(t, "has value") {
			out.Value = Label().Draw(t, "value")
		}
		if out.Effect == corev1.TaintEffectNoExecute && rapid.Bool().Draw(t, "ends") {
			seconds := rapid.Int64Range(0, 3600).Draw(t, "tolerationSeconds")
			out.TolerationSeconds = &seconds
		}
		return out
	})
}

// Bytes generates quantities of whole bytes in the given range, some of them
// round in binary or decimal units.
func Bytes(least, most int64) *rapid.Generator[resource.Quantity] {
	return rapid.Custom(func(t *rapid.T) resource.Quantity {
		n := rapid.Int64Range(least, most).Draw(t, "bytes")
		switch rapid.IntRange(0, 2).Draw(t, "unit") {
		case 0:
			if r := n &^ (1<<20 - 1); r >= least {
				return *resource.NewQuantity(r, resource.BinarySI)
			}
		case 1:
			if r := n / 1e6 * 1e6; r >= least {
				return *resource.NewQuantity(r, resource.DecimalSI)
			}
		}
		return *resource.NewQuantity(n, resource.DecimalSI)
	})
}

func maybe(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, "has "+what) }

func drawBool(t *rapid.T, what string) *bool {
	if !maybe(t, what) {
		return nil
	}
	b := rapid.Bool().Draw(t, what)
	return &b
}

func drawInt(t *rapid.T, what string, least, most int32) *int32 {
	if !maybe(t, what) {
		return nil
	}
	n := rapid.Int32Range(least, most).Draw(t, what)
	return &n
}
