package jsonwriter_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/jsonwriter"
)

// What is written is what encoding/json writes.
func TestValuesAreThoseOfJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\"", "\\n\n\t", "<&>", "\u2028", "\x7f", "\xff", "é"}))
	rapid.Check(t, func(t *rapid.T) {
		v := struct {
			Text    string            `json:"text,omitempty"`
			Number  int64             `json:"number,omitempty"`
			Flag    bool              `json:"flag,omitempty"`
			Strings map[string]string `json:"strings"`
			Items   []string          `json:"items"`
			Raw     json.RawMessage   `json:"raw"`
			None    *string           `json:"none"`
		}{
			text.Draw(t, "text"), rapid.Int64().Draw(t, "number"), rapid.Bool().Draw(t, "flag"),
			rapid.MapOf(text, text).Draw(t, "strings"), rapid.SliceOfN(text, 1, 3).Draw(t, "items"),
			json.RawMessage(rapid.SampledFrom([]string{"{}", `{ "a": "<" }`, "[1, 2]", "null", "7"}).Draw(t, "raw")), nil,
		}
		w := jsonwriter.New(make([]byte, 0, rapid.IntRange(0, 100).Draw(t, "room")))
		w.Open('{')
		w.Text("text", v.Text)
		w.Number("number", v.Number)
		w.Flag("flag", v.Flag)
		w.Key("strings")
		w.Strings(v.Strings)
		w.Key("items")
		w.Open('[')
		for _, s := range v.Items {
			w.String(s)
		}
		w.Close(']')
		w.Key("raw")
		w.Raw(v.Raw)
		w.Key("none")
		w.Null()
		w.Close('}')
		got, err := w.Result()
		want, wantErr := json.Marshal(v)
		if err != nil || wantErr != nil || string(got) != string(want) {
			t.Fatalf("%s (%v), want %s (%v)", got, err, want, wantErr)
		}
	})
}

func TestWhatIsNoJSONIsAnError(t *testing.T) {
	w := jsonwriter.New(nil)
	w.Raw(json.RawMessage("{"))
	if _, err := w.Result(); err == nil {
		t.Error("no error")
	}
}
