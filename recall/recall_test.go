package recall_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func texts(texts ...string) []recall.Entry {
	var entries []recall.Entry
	for i, text := range texts {
		entries = append(entries, recall.Entry{ThreadID: "t", MessageID: thread.ID(fmt.Sprint("m", i)), Position: i, Text: text})
	}
	return entries
}

func ids(hits []recall.Hit) []thread.ID {
	var out []thread.ID
	for _, h := range hits {
		out = append(out, h.MessageID)
	}
	return out
}

// TestSearch: which of some texts comes first for a query, and which come at
// all. A23
func TestSearch(t *testing.T) {
	x := recall.NewIndex(append(texts(
		/* 0 */ "func (c *Client) retryLoop(ctx context.Context) error {\n\treturn ErrLabelRejected\n}",
		/* 1 */ "the carrier client retries five times",
		/* 2 */ "carrier/client.go:88: undefined: MAX_RETRIES",
		/* 3 */ "order ORD-20417 was rejected with HTTP 429",
		/* 4 */ "配送ラベルが拒否されました",
		/* 5 */ "see internal\\queue\\HTTPServer_test.go and pkg@v1.2.3",
		/* 6 */ "Über die Größe der Étiquettes",
		/* 7 */ strings.Repeat("the carrier and the client talk about labels and orders. ", 40),
		/* 8 */ "if a != nil && b <= c { x = y[i] }",
		/* 9 */ "Ошибка сервера при запросе",
		/* 10 */ `write {"text":"\u043e\u0442\u043a\u0430\u0437 узла\nconst x = 1"}`,
		/* 11 */ "サーバーが落ちた",
		/* 12 */ "서버가 느립니다",
		/* 13 */ "сервера ошибка", // the words, but not the phrase
		/* 14 */ "バ サ ー",
		/* 15 */ "στην οδός Ερμού εδώ",
		/* 16 */ "ΕΡΜΟΎ ΣΤΗΝ ΟΔΌΣ", // the words, but not the phrase
	), recall.Entry{ThreadID: "u", MessageID: "u9", Tool: "Read", Role: thread.Tool, Summary: "Read shipq.conf: port", Text: "port = 7433"}))
	tests := []struct {
		query string
		want  []thread.ID // the first hits
	}{
		{"ErrLabelRejected", []thread.ID{"m0"}},
		{"errlabelrejected", []thread.ID{"m0"}},
		{"label rejected error", []thread.ID{"m0"}},
		{"retryLoop", []thread.ID{"m0"}},
		{"carrier/client.go", []thread.ID{"m2"}},
		{"client.go", []thread.ID{"m2"}},
		{"max retries", []thread.ID{"m2"}},
		{"MAX_RETRIES", []thread.ID{"m2"}},
		{"ORD-20417", []thread.ID{"m3"}},
		{"20417", []thread.ID{"m3"}},
		{"429", []thread.ID{"m3"}},
		{"拒否", []thread.ID{"m4"}},
		{"ラ", []thread.ID{"m4"}},
		{"HTTPServer", []thread.ID{"m5"}},
		{"http server test", []thread.ID{"m5"}},
		{"v1.2.3", []thread.ID{"m5"}},
		{"GRÖSSE größe", []thread.ID{"m6"}},
		{"étiquettes", []thread.ID{"m6"}},
		{`"ΣΤΗΝ ΟΔΌΣ ΕΡΜΟΎ"`, []thread.ID{"m15"}},
		{"abelReject", []thread.ID{"m0"}},
		{"a != nil && b", []thread.ID{"m8"}},
		{"y[i]", []thread.ID{"m8"}},
		{"shipq.conf", []thread.ID{"u9"}},
		{`"carrier client retries"`, []thread.ID{"m1"}},
		{`orders labels talk "client retries"`, []thread.ID{"m1"}},
		{"orders labels talk client retries", []thread.ID{"m7"}},
		{"rejecting labels", []thread.ID{"m0", "m7"}},
		{"undefine", []thread.ID{"m2"}},
		{`"ошибка сервера"`, []thread.ID{"m9"}},
		{`"ОШИБКА сервера"`, []thread.ID{"m9"}},
		{"тказ", []thread.ID{"m10"}},    // as it is shown
		{`\nconst`, []thread.ID{"m10"}}, // as it was written
		{"서버를", []thread.ID{"m12"}},
		{"zebra", nil},
		{"", nil},
		{`""`, nil},
		{" \t", nil},
		{"...", nil},
	}
	for _, tt := range tests {
		got := ids(x.Search(tt.query, nil))
		if len(tt.want) == 0 && len(got) > 0 || len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) {
			t.Errorf("%q: got %v, want %v first", tt.query, got, tt.want)
		}
	}
	for _, o := range []recall.Options{{ThreadID: "u"}, {Tool: "Read"}, {Role: thread.Tool}} {
		if got := ids(x.Search("port carrier client", &o)); !slices.Equal(got, []thread.ID{"u9"}) {
			t.Errorf("%+v: %v", o, got)
		}
	}
	if got := ids(x.Search("バーア", nil)); !slices.Equal(got, []thread.ID{"m11"}) {
		t.Errorf("a pair with a long vowel is in %v", got)
	}
	if got := x.Search("carrier client label", &recall.Options{Limit: 2}); len(got) != 2 {
		t.Errorf("%d hits, want 2", len(got))
	}
	if got := recall.NewIndex(nil).Search("x", nil); got != nil {
		t.Errorf("an empty index gave %v", got)
	}
}

// TestRareTerm: a name that one text alone holds outweighs two words that some
// hold.
func TestRareTerm(t *testing.T) {
	var all []string
	for i := range 20 {
		text := fmt.Sprint("plain text number ", i)
		switch {
		case i == 0:
			text += " about quokka_7"
		case i <= 4:
			text += " worker retries"
		}
		all = append(all, text)
	}
	if got := ids(recall.NewIndex(texts(all...)).Search("worker quokka_7 retries", nil)); len(got) != 5 || got[0] != "m0" {
		t.Errorf("got %v", got)
	}
}

// TestOrder: between texts that match alike the later comes first; the same text
// is one hit that names the others.
func TestOrder(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	x := recall.NewIndex([]recall.Entry{
		{ThreadID: "t", MessageID: "a", Position: 1, Text: "alpha one"},
		{ThreadID: "t", MessageID: "b", Position: 5, Text: "alpha two"},
		{ThreadID: "t", MessageID: "c", Position: 3, Text: "alpha two"},
		{ThreadID: "u", MessageID: "d", Position: 9, Time: late, Text: "beta six"},
		{ThreadID: "v", MessageID: "e", Position: 9, Time: early, Text: "beta ten"},
	})
	hits := x.Search("alpha", nil)
	if got := ids(hits); !slices.Equal(got, []thread.ID{"b", "a"}) || !slices.Equal(hits[0].Also, []thread.ID{"c"}) {
		t.Errorf("got %v, also %v", got, hits[0].Also)
	}
	if got := ids(x.Search("beta", nil)); !slices.Equal(got, []thread.ID{"d", "e"}) {
		t.Errorf("got %v", got)
	}
}

// TestSurroundings: an answer is found by its question, although it has no word of the query; of
// messages alike the one whose section is about the query comes first; a time that the query names
// decides.
func TestSurroundings(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2025, time.March, n, 9, 0, 0, 0, time.UTC) }
	var entries []recall.Entry
	say := func(n int, text string) {
		i := len(entries)
		entries = append(entries, recall.Entry{ThreadID: "t", MessageID: thread.ID(fmt.Sprint("m", i)), Position: i, Time: day(n), Text: text})
	}
	say(3, "Which port does the broker use?")           // 0
	say(3, "7433, and nothing else.")                   // 1
	say(3, "Good to know, thanks.")                     // 2
	say(8, "The kiln was hot.")                         // 3
	say(8, "We glazed the bowl, and then another bowl") // 4
	say(12, "The kiln was hot.  ")                      // 5
	say(12, "Nobody came to the pottery")               // 6
	for i := range 12 {
		say(20+i/6, fmt.Sprintf("number %d is about the weather", i))
	}
	x := recall.NewIndex(entries)
	for _, tt := range []struct {
		query string
		want  []thread.ID
	}{
		{"port of the broker", []thread.ID{"m0", "m1"}},
		{"how hot is the kiln for glazing bowls", []thread.ID{"m4"}},
		{"kiln glazed", []thread.ID{"m4", "m3", "m5"}},
		{"was the kiln hot on 12 March", []thread.ID{"m5", "m3"}},
		{"was the kiln hot on March 8", []thread.ID{"m3", "m5"}},
	} {
		if got := ids(x.Search(tt.query, nil)); len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) {
			t.Errorf("%q: got %v, want %v first", tt.query, got, tt.want)
		}
	}
}

// TestSpread: after the best message of one section, a little less good one of another comes before the
// next of the same.
func TestSpread(t *testing.T) {
	said := func(thread_ string, text ...string) (entries []recall.Entry) {
		for i, e := range texts(text...) {
			e.ThreadID, e.MessageID, e.Position = thread_, thread.ID(fmt.Sprint(thread_, i)), i
			entries = append(entries, e)
		}
		return entries
	}
	entries := append(said("a", "the otter swims", "an otter swims", "we went home again"), said("b", "one otter swims", "it rained")...)
	for i := range 8 {
		entries = append(entries, said(fmt.Sprint("c", i), "nothing of that kind")...)
	}
	if got := ids(recall.NewIndex(entries).Search("otter swims", nil)); len(got) != 3 || got[0][0] != 'a' || got[1] != "b0" || got[2][0] != 'a' {
		t.Errorf("got %v, want one of a, the one of b, the other of a", got)
	}
}

// TestExcerpt: whole lines around the best match, a part of a line that is too
// long.
func TestExcerpt(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("line %03d of the log", i))
	}
	lines[120] = "panic: index out of range in drainQueue"
	text := strings.Join(lines, "\n")
	long := strings.Repeat("é漢 ", 2000) + "needle_here" + strings.Repeat(" 👩‍👩‍👧 x", 2000)
	x := recall.NewIndex(texts(text, long, "short", "x\n"))

	h := x.Search("drainQueue", &recall.Options{Limit: 1, Tokens: 200})[0]
	if h.Lines != 200 || h.Line < 105 || h.Line > 121 || len(h.Excerpt) > 600 || !strings.Contains(h.Excerpt, lines[120]) ||
		!strings.HasPrefix(strings.Join(lines[h.Line-1:], "\n"), h.Excerpt+"\n") {
		t.Errorf("line %d of %d: %q", h.Line, h.Lines, h.Excerpt)
	}
	if h := x.Search("panic in that drainqueue", &recall.Options{Limit: 1, Tokens: 200})[0]; !strings.Contains(h.Excerpt, lines[120]) {
		t.Errorf("line %d of %d: %q", h.Line, h.Lines, h.Excerpt)
	}
	h = x.Search("needle_here", nil)[0]
	if len(h.Excerpt) > 4*recall.DefaultTokens || h.Line != 1 || h.Column < 2 || !strings.Contains(h.Excerpt, "needle_here") || !utf8.ValidString(h.Excerpt) ||
		!strings.HasPrefix(h.Excerpt, "…") || !strings.HasSuffix(h.Excerpt, "…") {
		t.Errorf("%d bytes: %q", len(h.Excerpt), h.Excerpt)
	}
	if h := x.Search("short", nil)[0]; h.Excerpt != "short" || h.Line != 1 || h.Lines != 1 {
		t.Errorf("%+v", h)
	}
}

// FuzzSearch: any texts and any query give hits in order, whole excerpts and the
// same again.
// TestExcerptHasAllOfTheQuestion: lines that repeat one word of a question are not shown in place of the
// line that has all of them.
func TestExcerptHasAllOfTheQuestion(t *testing.T) {
	var all []string
	for n := range 22 {
		all = append(all, fmt.Sprintf("gate %d: the code is K%d\n", n+1, 7919*(n+1))+strings.Repeat(fmt.Sprintf("line of gate %d\n", n+1), 400))
	}
	hits := recall.NewIndex(texts(all...)).Search("the code of gate 1", nil)
	if len(hits) == 0 || !strings.Contains(hits[0].Excerpt, "K7919") {
		t.Errorf("got %+v", hits)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("HTTPServer_test.go /a/b.c __x__ A", "b", "httpserver \"a/b\"")
	f.Add("漢字かな\nไทย K\xff", "\n\n", "K 字")
	f.Add("", "...///", "\"\"\" - \"x")
	f.Fuzz(func(t *testing.T, a, b, query string) {
		x := recall.NewIndex(texts(a, b, a+"\n"+b))
		hits := x.Search(query, &recall.Options{Tokens: 20})
		if !reflect.DeepEqual(hits, x.Search(query, &recall.Options{Tokens: 20})) {
			t.Fatal("not the same again")
		}
		for i, h := range hits {
			if i > 0 && hits[i-1].Score < h.Score {
				t.Fatalf("%v", hits)
			}
			if !(h.Score > 0) || h.Line < 1 || h.Line > h.Lines {
				t.Fatalf("%+v", h)
			}
		}
		if q := strings.TrimSpace(query); q != "" && !strings.Contains(q, `"`) && strings.Contains(a, q) && len(hits) == 0 {
			t.Fatalf("%q holds %q and is not found", a, q)
		}
	})
}

// TestCallOfExcerpt: an excerpt from the middle of a call's arguments tells that call and
// the argument.
func TestCallOfExcerpt(t *testing.T) {
	long := strings.Repeat("the line before it is of no interest here\\n", 40)
	m, err := thread.New("t").Append(thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.Text{Text: "I looked at it {\"and\":\"" + long + "wagtail\"}"},
		thread.ToolCall{ID: "a", Name: "Edit", Arguments: `{"path":"a.go","new":"` + long + `heron"}`},
		thread.ToolCall{ID: "b", Name: "Edit", Arguments: `{"path":"b.go","old":"osprey\n` + long + `plover\n` + long + `","new":"kingfisher"}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	x := recall.NewIndex(recall.All(m))
	for word, call := range map[string]string{
		"wagtail": "", // words before an object are no call
		"heron":   "Edit a.go the line before it is of no interest here, in new",
		"plover":  "Edit b.go osprey kingfisher, in old",
		"looked":  "", // it is of no call
	} {
		hits := x.Search(word, &recall.Options{Tokens: 60})
		if len(hits) != 1 {
			t.Fatalf("%s: %d hits", word, len(hits))
		}
		if h := hits[0]; h.Call != call || !strings.Contains(h.Excerpt, word) {
			t.Errorf("%s: by the call %q, want %q: %.400q", word, h.Call, call, h.Excerpt)
		}
	}
}

// TestPassages: what answers a question of several things stands in several
// passages of one message, and what those show is not shown again; names near them
// are listed; an answer keeps to its size.
func TestPassages(t *testing.T) {
	filler := strings.Repeat("nothing to see in this line of a long file\n", 100)
	file := filler + "func openQuokka() error {\n" + filler + "func closeWombat() error {\n" + "\treturn s.drainPlatypus()\n" + filler
	other := "closeWombat is what we talked about"
	x := recall.NewIndex(texts(file, other, "and this is about neither"))
	hits := x.Search("openQuokka and closeWombat", &recall.Options{Limit: 3, Tokens: 600})
	var all strings.Builder
	for _, h := range hits {
		all.WriteString(h.Excerpt + strings.Join(h.Near, " "))
	}
	for _, want := range []string{"func openQuokka", "func closeWombat", "drainPlatypus"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%s is not shown: %+v", want, hits)
		}
	}
	if n := all.Len(); n > 4*600 {
		t.Errorf("%d bytes for 600 tokens", n)
	}
	code := `t.Fatal("openQuokka") "a" "b" "c" "` + strings.Repeat("x ", 200)
	if hits := x.Search(code, nil); len(hits) == 0 || !strings.Contains(hits[0].Excerpt, "func openQuokka") {
		t.Errorf("quotes in code hide what it names: %+v", hits)
	}
}

// TestCopies: of a passage that was read twice one is shown, which names the other.
func TestCopies(t *testing.T) {
	file := func(first int, lines ...string) string {
		var b strings.Builder
		for n, line := range lines {
			fmt.Fprintf(&b, "%6d→%s\n", first+n, line)
		}
		return b.String()
	}
	read := file(40, "\ttry {", "\t\tconst result = await executeRpcBashCommand(input.command);", "\t\tconsole.log(JSON.stringify({ type: 'bash_end', message: result }));", "\t} catch (error) {")
	again := file(290, "\t\ttry {", "\t\t\tconst result = await executeRpcBashCommand(input.command);", "\t\t\tconsole.log(JSON.stringify({ type: 'bash_end', message: result }));", "\t\t} catch (error) {", "\t\t\tprocess.exit(1);")
	written := file(7, "case 'bash':", "\tconsole.log(JSON.stringify({ type: 'bash_end', ...result }));")
	hits := recall.NewIndex(texts(read, "nothing of that kind", again, written)).Search("bash_end result", nil)
	if got := ids(hits); len(got) != 2 || !slices.Contains(got, "m3") {
		t.Fatalf("hits %v, want one of the two readings and what was written", got)
	}
	for _, h := range hits {
		if h.MessageID != "m3" && len(h.Also) != 1 {
			t.Errorf("%s does not name the other reading: %v", h.MessageID, h.Also)
		}
	}
}

// TestNames: beside the passages stand the names that are most likely meant: those
// of a message near a passage with it, those of other messages with the best hit,
// each once, none that the question or a passage holds, none of a message that the
// search leaves out, and no more than there is room for.
func TestNames(t *testing.T) {
	filler := strings.Repeat("nothing to see in this line of a long file\n", 40)
	file := "func openQuokka() error {\n\treturn loadQuokkaState()\n}\n" + filler +
		"func closeQuokka() error {\n\tlog.Print(\"the quokka is gone: %w\")\n}\n" + filler
	entries := texts(file, "the quokka of pkg/zoo/keeper.go eats at feedingTime", "wombats have burrowDepth 17345, quokka none", "quokka passwords are hunter2hunter2")
	for i := range entries {
		entries[i].Role = thread.Tool
	}
	entries[3].Role = thread.User
	names := func(limit, tokens int) (near, others []string) {
		t.Helper()
		x := recall.NewIndex(entries)
		seen := map[string]bool{}
		for i, h := range x.Search("openQuokka loadQuokkaState", &recall.Options{Limit: limit, Tokens: tokens, Role: thread.Tool}) {
			if i > 0 && h.Others != nil {
				t.Errorf("names beside hit %d: %q", i, h.Others)
			}
			for _, name := range append(h.Near, h.Others...) {
				if seen[name] || strings.Contains(h.Excerpt, name) || name == "openQuokka" || name == "loadQuokkaState" || strings.Contains(name, "hunter2") {
					t.Errorf("%s is told twice, or asked for, or of a message that was left out", name)
				}
				seen[name] = true
			}
			near, others = append(near, h.Near...), append(others, h.Others...)
		}
		return near, others
	}
	near, others := names(1, 300)
	if !slices.Contains(near, "closeQuokka") || !slices.Contains(near, `"the quokka is gone: %w"`) {
		t.Errorf("near are %q", near)
	}
	if !slices.Contains(others, "pkg/zoo/keeper.go") || !slices.Contains(others, "feedingTime") {
		t.Errorf("others are %q", others)
	}
	less, few := names(1, 150)
	if n := len(less) + len(few); n == 0 || n >= len(near)+len(others) {
		t.Errorf("%d names in 150 tokens, %d in 300", n, len(near)+len(others))
	}
}

// ending is a context that ends after it was looked at so many times.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestIndexStops: when the context ends nothing more is indexed, wherever the work is.
func TestIndexStops(t *testing.T) {
	entries := make([]recall.Entry, 30)
	for n := range entries {
		entries[n] = recall.Entry{MessageID: thread.ID(fmt.Sprint(n)), Text: fmt.Sprintf("bell_%d.go rings", n)}
	}
	const never = 1_000_000
	whole := &ending{t.Context(), never}
	x, err := recall.NewIndexContext(whole, entries)
	if err != nil || x.Len() != len(entries) || len(x.Search("bell_7.go", nil)) == 0 {
		t.Fatalf("%d entries: %v", x.Len(), err)
	}
	looks := never - whole.looks
	if looks < len(entries) {
		t.Errorf("it looks %d times", looks)
	}
	for n := range looks {
		ctx := &ending{t.Context(), n}
		if _, err := recall.NewIndexContext(ctx, entries); !errors.Is(err, context.Canceled) || ctx.looks != -1 {
			t.Errorf("it ended at look %d, and there were %d more: %v", n, -1-ctx.looks, err)
		}
	}
}
