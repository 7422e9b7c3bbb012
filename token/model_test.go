package token

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindModel(t *testing.T) {
	for name, want := range map[string]string{
		"claude-opus-4-5":                              "claude-opus-4-5",
		"Claude-Opus-4-5":                              "claude-opus-4-5",
		"claude-opus-4-5-20251101":                     "claude-opus-4-5",
		"claude-opus-4.5":                              "claude-opus-4-5",
		"anthropic/claude-opus-4.5":                    "claude-opus-4-5",
		"claude-sonnet-4-5@20250929":                   "claude-sonnet-4-5",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5",
		"anthropic.claude-3-5-haiku-20241022-v1:0":     "claude-3-5-haiku",
		"claude-sonnet-4-20250514":                     "claude-sonnet-4",
		"claude-opus-4-0":                              "claude-opus-4",
		"claude-3-7-sonnet-latest":                     "claude-3-7-sonnet",
		"anthropic/claude-sonnet-4.6:thinking":         "claude-sonnet-4-6",
		"claude-opus-5-5[1m]":                          "claude-opus-5-5",
		"openai/gpt-4o":                                "gpt-4o",
		"gpt-4o-2024-08-06":                            "gpt-4o",
		"gpt-4o-mini-2024-07-18":                       "gpt-4o-mini",
		"gpt-5.2-codex":                                "gpt-5.2-codex",
		"models/gemini-2.5-pro":                        "gemini-2.5-pro",
		"google/gemini-2.5-flash":                      "gemini-2.5-flash",
		"gemini-2.5-pro-preview-05-06":                 "gemini-2.5-pro",
		"gemini-3-flash-preview":                       "gemini-3-flash",
		"moonshot-ai/kimi-k2.7-code":                   "kimi-k2.7-code",
		"openrouter/openai/gpt-oss-120b":               "gpt-oss-120b",
		" gpt-4.1 ":                                    "gpt-4.1",
	} {
		m, err := Models().Find(name)
		if err != nil || m.Name != want {
			t.Errorf("Find(%q) is %q (%v), want %q", name, m.Name, err, want)
		}
	}
	for _, name := range []string{"", "gpt-4o-maxi", "stub-model", "claude", "gpt-4", "-20250101", "claude-opus-4-5-20251101-20251102-20251103-20251104-20251105", strings.Repeat("x", 100_000)} {
		if m, err := Models().Find(name); !errors.Is(err, ErrUnknownModel) {
			t.Errorf("Find(%.40q) is %q (%v)", name, m.Name, err)
		}
	}
	_, err := Models().Find("anthropic/claude-opsu-4-5")
	if err == nil || !strings.Contains(err.Error(), "claude-opus-4-5") {
		t.Errorf("the error does not list the nearest name: %v", err)
	}
	if _, err := (ModelSet{}).Find("x"); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("an empty set: %v", err)
	}
}

// Every row can be counted for, and says where its numbers are from.
func TestModelTable(t *testing.T) { // A13
	rows := Models().All()
	if len(rows) < 40 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, m := range rows {
		c, err := ForModel(m)
		if err != nil {
			t.Error(err)
			continue
		}
		if m.Date == "" || m.Source == "" || m.Provider == "" {
			t.Errorf("%s has no date, source or provider", m.Name)
		}
		if m.Estimated && c.Exact() {
			t.Errorf("%s has a borrowed tokenizer that is called exact", m.Name)
		}
		if m.Window > 0 && (m.MaxOutput > m.Window || m.MaxInput > m.Window) {
			t.Errorf("%s: limits %d and %d are beyond the window of %d", m.Name, m.MaxInput, m.MaxOutput, m.Window)
		}
		for _, p := range m.Prices {
			if p.Input == 0 || p.Output < p.Input || p.CacheRead > p.Input || p.CacheWrite > 2*p.Input || p.CacheWrite1h > 2*p.Input {
				t.Errorf("%s: implausible price %+v", m.Name, p)
			}
		}
		if strings.HasSuffix(m.Name, "-5-5") != m.BindsThinking && m.Provider == "anthropic" && !strings.Contains(m.Name, "fable-5-") {
			t.Errorf("%s: binds thinking %v", m.Name, m.BindsThinking)
		}
	}
}

func TestPriceByPromptLength(t *testing.T) {
	m, err := Models().Find("claude-haiku-5-5")
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]float64{0: 0.1, 100_000: 0.1, 100_001: 0.5} {
		if p, ok := m.Price(length); !ok || p.Input != want {
			t.Errorf("%d tokens cost %v a million (%v), want %v", length, p.Input, ok, want)
		}
	}
	if _, ok := (Model{}).Price(1); ok {
		t.Error("a model without prices has one")
	}
}

func TestOverrideModels(t *testing.T) {
	own, err := ParseModels([]byte(`{"models":[
		{"name":"GPT-4o","provider":"openai","window":64000,"counter":"o200k","date":"2026-01-01","source":"our contract"},
		{"name":"house-1","provider":"vllm","window":32000,"counter":"chars/3.5","date":"2026-01-01","source":"ours"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	both, err := Models().With(own)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(both.All()), len(Models().All())+1; got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	got, err := both.Find("gpt-4o")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := own.Find("gpt-4o")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the row was not replaced whole (-want +got):\n%s", diff)
	}
	if m, err := both.Find("house-1"); err != nil || m.Window != 32_000 {
		t.Errorf("the added row: %+v (%v)", m, err)
	}
	if m, err := Models().Find("gpt-4o"); err != nil || m.Window != 128_000 {
		t.Errorf("the table of the release changed: %+v (%v)", m, err)
	}
	clash, err := ParseModels([]byte(`{"models":[{"name":"house-2","aliases":["gpt-4o"],"provider":"x","counter":"o200k","date":"d","source":"s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Models().With(clash); err == nil || !strings.Contains(err.Error(), "house-2") {
		t.Errorf("an alias that is another row's name: %v", err)
	}
}

func TestParseModelsErrors(t *testing.T) {
	row := func(s string) string { return `{"models":[{"name":"m","provider":"p","counter":"o200k"` + s + `}]}` }
	for name, k := range map[string]struct{ data, says string }{
		"empty":           {"", "EOF"},
		"not JSON":        {`{"models":[}`, "invalid character"},
		"unknown field":   {row(`,"windw":1`), "windw"},
		"no name":         {`{"models":[{"counter":"o200k"}]}`, "row 0"},
		"unknown counter": {`{"models":[{"name":"m","counter":"abacus"}]}`, "abacus"},
		"unknown formula": {row(`,"images":"abacus"`), "abacus"},
		"negative":        {row(`,"window":-1`), "window"},
		"negative price":  {row(`,"prices":[{"input":-1,"output":1}]`), "price"},
		"price order":     {row(`,"prices":[{"input":1,"output":1},{"input":1,"output":1}]`), "prices"},
		"twice":           {`{"models":[{"name":"m","counter":"o200k"},{"name":"M","counter":"o200k"}]}`, "taken by row 0"},
	} {
		if _, err := ParseModels([]byte(k.data)); err == nil || !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWindowBeside: a request may take what the window leaves beside the answer, and no more
// than the input that the model takes.
func TestWindowBeside(t *testing.T) {
	for _, k := range []struct {
		model         Model
		limit, answer int // the limit on the answer, and what is reserved for it
		window        int
	}{
		{Model{Window: 200_000, MaxOutput: 64_000}, 0, 20_000, 200_000},
		{Model{Window: 200_000, MaxOutput: 64_000}, 1_000, 1_000, 200_000},
		{Model{Window: 400_000, MaxInput: 272_000, MaxOutput: 128_000}, 0, 20_000, 292_000},
		{Model{Window: 400_000, MaxInput: 390_000, MaxOutput: 128_000}, 50_000, 20_000, 400_000},
		{Model{Window: 9_000, MaxOutput: 9_000}, 0, 3_000, 9_000},
		{Model{Window: 9_000, MaxOutput: 9_000}, 5_000, 5_000, 9_000},
		{Model{Window: 9_000, MaxOutput: 9_000}, 64_000, 3_000, 9_000},
		{Model{MaxInput: 100_000}, 0, 0, 0},
		{Model{}, 0, 0, 0},
		{Model{MaxOutput: 8_000}, -1, 0, 0},
	} {
		answer := k.model.AnswerReserve(k.limit, 0)
		if window := k.model.WindowBeside(answer); answer != k.answer || window != k.window {
			t.Errorf("%+v, limit %d: %d for the answer in %d, want %d in %d", k.model, k.limit, answer, window, k.answer, k.window)
		}
	}
}

func FuzzParseModels(f *testing.F) {
	f.Add([]byte(`{"models":[{"name":"m","counter":"chars/4","aliases":["a"],"prices":[{"input":1,"output":2}]}]}`))
	f.Add([]byte(`{"models":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseModels(data)
		if err != nil {
			return
		}
		for _, m := range s.All() {
			if got, err := s.Find(m.Name); err != nil && strings.TrimSpace(m.Name) == m.Name {
				t.Fatalf("row %q is not found: %v", m.Name, err)
			} else if err == nil && got.Name != m.Name {
				t.Fatalf("row %q is found as %q", m.Name, got.Name)
			}
			m.Price(1)
		}
	})
}
