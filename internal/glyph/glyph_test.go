package glyph_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/glyph"
)

// TestVisible: what steers a terminal, hides or only looks like another letter is shown as an escape, and
// words of any language stay as they are.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"mcp__files__read":               "mcp__files__read",
		"a\x1b]0;owned\x07b":             `a\x1b]0;owned\ab`,
		"\x1b[31mred\x7f\u009b2J":        `\x1b[31mred\x7f\u009b2J`,
		"file\u202egnp.exe":              `file\u202egnp.exe`,
		"\u2066x\u2069 \u200fy \u061c":   `\u2066x\u2069 \u200fy \u061c`,
		"R\u0435ad":                      `R\u0435ad`,  // Cyrillic
		"\u0391dmin":                     `\u0391dmin`, // Greek
		"Re\uff41d":                      `Re\uff41d`,  // of full width
		"re\u200bad re\u00adad x\u200dy": `re\u200bad re\u00adad x\u200dy`,
		"tag\U000e0041 \u3164":           `tag\U000e0041 \u3164`,
		"one\ntwo\tthree\u2028four":      "one two three four",
		"\xff\xfeok":                     `\xff\xfeok`,
		"Größe München façade \ufffd":    "Größe München façade \ufffd",
		"Читать файл":                    "Читать файл",
		"Ανάγνωση":                       "Ανάγνωση",
		"読み込み TODOリスト ファイル.go":          "読み込み TODOリスト ファイル.go",
		"می\u200cخواهم":                 "می\u200cخواهم",
		"\U0001f469\u200d\U0001f4bb ok": "\U0001f469\u200d\U0001f4bb ok",
		"5 kΩ, Δt = λ·2":                "5 kΩ, Δt = λ·2",
		`C:\x1b`:                        `C:\x1b`,

		"re\ufe0fad \u2764\ufe0f \u2764\ufe0f\ufe0f":                      `re\ufe0fad ` + "\u2764\ufe0f \u2764\ufe0f" + `\ufe0f`, // variation selectors
		"re\u034fad \u4e2d\U000e0100 x\u180by":                            `re\u034fad 中\U000e0100 x\u180by`,
		"\u0301a \u0301 e\u0301t \u0939\u093f\u0928\u094d\u0926\u0940":    `\u0301a \u0301 ` + "e\u0301t \u0939\u093f\u0928\u094d\u0926\u0940", // on nothing, on letters
		"re\u0430d\u0301 \u0430_b \u0430_1 \u0441\u043e\u0440\u04432":     `re\u0430d` + "\u0301" + ` \u0430_b \u0430_1 \u0441\u043e\u0440\u04432`,
		"\u0440\u0430\u0437\u0434\u0435\u043b_2 \u0441\u043e\u0440\u0443": "\u0440\u0430\u0437\u0434\u0435\u043b_2 \u0441\u043e\u0440\u0443", // Cyrillic
	} {
		if got := glyph.Visible(text); got != want {
			t.Errorf("Visible(%+q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzVisible: nothing hidden is left in any text.
func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[0m \u202e\u0430b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := glyph.Visible(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, glyph.Hidden) {
			t.Errorf("%+q becomes %+q", s, got)
		}
	})
}
