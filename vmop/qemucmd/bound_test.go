package qemucmd

import (
	"testing"

	"pgregory.net/rapid"
)

// An argument that is not measured is no longer than was said.
func TestNoArgumentExceedsItsBound(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[,\x00-\x1f"\\\\]{0,20}`), rapid.SampledFrom([]string{"", "\xff\xfe", "a=b", "é"}))
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) Value
		props := func(depth int) []Prop {
			out := make([]Prop, rapid.IntRange(0, 3).Draw(t, "props"))
			for i := range out {
				out[i] = Prop{text.Draw(t, "key"), value(depth)}
			}
			return out
		}
		value = func(depth int) Value {
			switch rapid.IntRange(0, 6+2*min(depth, 1)).Draw(t, "kind") {
			case 0:
				return Str(text.Draw(t, "text"))
			case 1:
				return Ref(text.Draw(t, "reference"))
			case 2:
				return Bus(text.Draw(t, "bus"))
			case 3:
				return Int(rapid.Int64().Draw(t, "number"))
			case 4:
				return Bool(rapid.Bool().Draw(t, "bool"))
			case 5:
				return FD(rapid.Int().Draw(t, "descriptor"))
			case 6:
				return Null{}
			case 7:
				list := make(List, rapid.IntRange(0, 3).Draw(t, "items"))
				for i := range list {
					list[i] = value(depth - 1)
				}
				return list
			}
			return Object(props(depth - 1))
		}
		o := Option{
			Flag:    rapid.SampledFrom([]string{"-device", "-blockdev", "-append", "-chardev"}).Draw(t, "flag"),
			HeadKey: text.Draw(t, "head key"), Head: text.Draw(t, "head"), ID: text.Draw(t, "ID"),
			JSON: rapid.Bool().Draw(t, "JSON"),
		}
		o.Props = props(2)
		if got := len(o.appendArgument(nil)); got > o.bound() {
			t.Fatalf("%+v has %d bytes, and at most %d", o, got, o.bound())
		}
	})
}
