package rawjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

func TestCheck(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	mixed := func(n int) string { return strings.Repeat(`{"a":[`, n) + strings.Repeat(`]}`, n) }
	tests := []struct {
		doc  string
		want error
		says string
	}{
		{`{"a":[1,"]\\\"}"]}`, nil, ""},
		{` [ { } , [ ] , {"a" : -0.5e+3 , "b":null}, true,false,"\u00e9\n" ] `, nil, ""},
		{`"` + strings.Repeat("[", 5000) + `"`, nil, ""}, // brackets in a string nest nothing
		{deep(rawjson.MaxDepth), nil, ""},
		{mixed(rawjson.MaxDepth / 2), nil, ""},
		{"[" + mixed(rawjson.MaxDepth/2) + "]", rawjson.ErrDepth, "over 1000 levels at byte 3000, in [0].a[0].a[0].a…"},
		{deep(rawjson.MaxDepth + 1), rawjson.ErrDepth, "over 1000 levels at byte 1000, in [0][0]"},
		{strings.Repeat("[", 6_000_000), rawjson.ErrDepth, "at byte 1000"},
		{strings.Repeat(`{"a":`, 100_000), rawjson.ErrDepth, "in a.a.a"},
		{`{"model":"m","messages":[{"a":[]},{"content":["x",{"input":` + deep(2000) + `}]}]}`, rawjson.ErrDepth, "in messages[1].content[1].input[0]…"},
		{`{"a b":{"` + strings.Repeat("x", 50) + `":` + deep(2000) + `}}`, rawjson.ErrDepth, "in ….…[0]"},
		{``, rawjson.ErrSyntax, "not valid JSON at byte 0"},
		{`{"a":1`, rawjson.ErrSyntax, "at byte 6"},
		{`{} {}`, rawjson.ErrSyntax, "at byte 3"},
		{`"abc\`, rawjson.ErrSyntax, ""},
		{deep(500) + "]", rawjson.ErrSyntax, "at byte 1000"},
	}
	for _, tt := range tests {
		err := rawjson.Check(tt.doc)
		if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.40s: %v, want %v that says %q", tt.doc, err, tt.want, tt.says)
		}
		if other := rawjson.Check([]byte(tt.doc)); fmt.Sprint(other) != fmt.Sprint(err) {
			t.Errorf("%.40s as bytes: %v", tt.doc, other)
		}
		if rawjson.Valid(tt.doc) != (tt.want == nil) || rawjson.Valid([]byte(tt.doc)) != (tt.want == nil) {
			t.Errorf("%.40s: Valid and Check do not agree", tt.doc)
		}
	}
}

// TestWrong: what RFC 8259 does not allow is no JSON, wherever it stands.
func TestWrong(t *testing.T) {
	for _, doc := range []string{
		"", " ", "\ufeff1", "tru", "nul", "True", "01", "-", "-a", "1.", ".5", "1e", "1e+", "+1", "0x1", "1 2", "'a'", `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"a\nb\"", "\"\x00\"",
		"[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", `{"a"`, `{"a":`, `{"a":1,`, `{"a":1,}`, `{,}`, `{a:1}`, `{1:1}`, `{"a" 1}`, `{"a":1]`, `{"a":1 "b":2}`, "[]]", "{}}", "[1]x",
	} {
		for _, around := range []string{"%s", "[%s]", `{"k":%s}`, `[0,{"k":[%s]},1]`, "  %s\n"} {
			text := fmt.Sprintf(around, doc)
			if got, want := rawjson.Valid(text), json.Valid([]byte(text)); got != want {
				t.Errorf("%q: %t, want %t", text, got, want)
			}
		}
	}
}

func TestTooDeep(t *testing.T) {
	for _, c := range []struct {
		doc    string
		levels int
		want   bool
	}{
		{`{"a":[1]}`, 2, false}, {`{"a":[1]}`, 1, true}, {`{"a":"[[[["}`, 1, false}, {`1`, 0, false}, {`]`, 1, false},
		{strings.Repeat("[", 1e6), 1e9, true}, {strings.Repeat("[", rawjson.MaxDepth), 1e9, false},
	} {
		if got := rawjson.TooDeep([]byte(c.doc), c.levels); got != c.want {
			t.Errorf("%.20s, %d levels: %t", c.doc, c.levels, got)
		}
	}
}

// FuzzCheck: up to MaxDepth it takes what encoding/json takes, and nothing else;
// beyond, nothing.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e7,"x\u00e9",null,true,false,{}]}`, ` [ ] `, `"\ud800"`, "\"\xff\"", `[1,]`, `{"a":1,"a":2}`, `"12345678\"12345678"`, "\"1234567\x1f\"",
		strings.Repeat("[", 999) + "{}" + strings.Repeat("]", 999), strings.Repeat("[", 1001), strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		err := rawjson.Check(doc)
		want := json.Valid([]byte(doc))
		if errors.Is(err, rawjson.ErrDepth) {
			if strings.Count(doc, "[")+strings.Count(doc, "{") <= rawjson.MaxDepth {
				t.Fatalf("%v", err)
			}
			return
		}
		if (err == nil) != want {
			t.Fatalf("%q: %v, and encoding/json says %t", doc, err, want)
		}
	})
}

// TestNoMemory: to judge a document takes none.
func TestNoMemory(t *testing.T) {
	for _, doc := range documents() {
		if n := testing.AllocsPerRun(10, func() { rawjson.Valid(doc) }); n > 0 {
			t.Errorf("%.30s: %v allocations", doc, n)
		}
	}
}

// documents are of the kinds that pass through here most.
func documents() map[string]string {
	var request strings.Builder
	request.WriteString(`{"model":"m","messages":[`)
	for n := range 400 {
		fmt.Fprintf(&request, `{"role":"tool","tool_call_id":"call_%d","content":%s},`, n, rawjson.Quote(strings.Repeat("func (s *Server) Serve(ctx context.Context) error {\n\treturn nil // \"done\"\n}\n", 20)))
	}
	request.WriteString(`{"role":"user","content":"go on"}],"stream":true}`)
	return map[string]string{
		"request":   request.String(),
		"arguments": `{"file_path":"/src/server/serve.go","offset":120,"limit":80,"show":true}`,
		"rows":      "[" + strings.Repeat(`{"id": 17, "name": "a name", "price": 181.50, "tags": ["x", "y"], "at": {"lat": 53.07, "lon": 8.8}}, `, 500) + "{}]",
		"base64":    `{"data":"` + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 20_000) + `"}`,
		"nested":    strings.Repeat(`{"a":[`, 400) + strings.Repeat(`]}`, 400),
	}
}

// BenchmarkValid tells the time of gjson's reader for each unit of ours, measured
// in turns: above 1 is faster.
func BenchmarkValid(b *testing.B) {
	for name, doc := range documents() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			var ours, theirs time.Duration
			rounds := max(1, 1<<20/len(doc))
			for b.Loop() {
				start := time.Now()
				for range rounds {
					rawjson.Valid(doc)
				}
				between := time.Now()
				for range rounds {
					gjson.Valid(doc)
				}
				ours, theirs = ours+between.Sub(start), theirs+time.Since(between)
			}
			b.ReportMetric(float64(theirs)/float64(ours), "gjson/ours")
			b.ReportMetric(float64(len(doc)*rounds*b.N)/ours.Seconds()/1e6, "MB/s-ours")
		})
	}
}
