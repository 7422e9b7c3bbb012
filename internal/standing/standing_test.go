package standing

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestVersion: whoever learns another table, or changes the features, says so in the version.
func TestVersion(t *testing.T) {
	if want := fmt.Sprintf("2-%08x", crc32.ChecksumIEEE([]byte(learned))); Version != want {
		t.Errorf("Version is %q; of this table it is %q (and its first number is that of the features)", Version, want)
	}
	if len(learned) != Size || len(learned)+len(classText) > 512<<10 {
		t.Errorf("the table has %d bytes and the classes %d, want %d for the table, at most 512 KB together", len(learned), len(classText), Size)
	}
}

// golden are scores by weights that the test makes, so that they tell of features and
// arithmetic alone: another machine has the same.
var golden = []struct {
	c               Clause
	stands, revokes int
}{
	{Clause{Text: "Never push to main."}, -260, 478},
	{Clause{Text: "der ordner legacy/ bleibt wie er ist"}, -326, 332},
	{Clause{Text: "2", Before: "1) fixed delay or 2) exponential?"}, -227, 375},
	{Clause{Text: "变量名用英文", Index: 1, Count: 3}, -174, 122},
	{Clause{Text: "테스트는 항상 먼저 돌려 줘"}, -259, 402},
	{Clause{Text: "…"}, 1, 1},
	{Clause{Text: "don’t touch `go.mod`, ever"}, 36, 206},
}

func made() Table {
	var t []byte
	for i := range Numbers {
		t = append(t, byte(i+3), byte(7*i), 1, 0)
	}
	for h := uint64(1); len(t) < Size; t = append(t, byte(h)) {
		h = mix(h, 1)
	}
	return Table(t)
}

func TestScoreIsTheSameOnEveryMachine(t *testing.T) {
	table := made()
	for _, g := range golden {
		if stands, revokes := table.Score(g.c, Stands), table.Score(g.c, Revokes); stands != g.stands || revokes != g.revokes {
			t.Errorf("Score(%+v) = %d, %d, want %d, %d", g.c, stands, revokes, g.stands, g.revokes)
		}
	}
	if got, want := table.Changes("Mocha is history", "tests run with Mocha"), 423; got != want {
		t.Errorf("Changes = %d, want %d", got, want)
	}
}

// TestRanks: in each pair the first stands and the second does not.
func TestRanks(t *testing.T) {
	for _, pair := range [][2]Clause{
		{{Text: "from now on every commit message is in French"}, {Text: "write a commit message for this in French"}},
		{{Text: "the migrations folder is off limits"}, {Text: "the migrations folder has 40 files"}},
		{{Text: "I prefer short answers"}, {Text: "thanks, that was a short answer"}},
		{{Text: "keine neuen abhängigkeiten ohne meine freigabe"}, {Text: "welche abhängigkeiten haben wir?"}},
		{{Text: "forget the line limit, it no longer applies"}, {Text: "how long is the longest line?"}},
		{{Text: "the second", Before: "Shall we store it as JSON or as CSV from here on?"}, {Text: "yes", Before: "Shall I run the tests now?"}},
	} {
		if stands, falls := Score(pair[0]), Score(pair[1]); stands <= falls {
			t.Errorf("%+v has %d, not above %d of %+v", pair[0], stands, falls, pair[1])
		}
	}
}

func TestClauses(t *testing.T) {
	for message, want := range map[string][]string{
		"":        nil,
		"?!":      nil,
		"ok":      {"ok"},
		"Use Go.": {"Use Go."},
		"thanks, that works. from here on keep lines short": {"thanks, that works.", "from here on keep lines short"},
		"see e.g. the readme, vs. the docs":                 {"see e.g. the readme, vs. the docs"},
		"Fix it; never touch main.go though":                {"Fix it; never touch main.go though"},
		"fix the parser; never touch main.go though":        {"fix the parser;", "never touch main.go though"},
		"about the freeze: it is lifted":                    {"about the freeze: it is lifted"},
		"> always use tabs\nwe do not do that":              {"we do not do that"},
		"```\nnever reached here\n```\nplease fix this":     {"please fix this"},
		"先跑测试。不要动主分支！":                                      {"先跑测试。", "不要动主分支！"},
		"first line here\nsecond line here":                 {"first line here", "second line here"},
	} {
		var got []string
		for _, c := range Clauses(message, "") {
			got = append(got, c.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Clauses(%q) = %q, want %q", message, got, want)
		}
	}
}

// TestBest: the score of a message is that of its highest clause, whatever stands around it.
func TestBest(t *testing.T) {
	rule := "never commit to main without asking me first."
	message := "thanks, the build is green again. " + rule + " what does the second test do?"
	clause, score := learned.Best(message, "")
	if clause.Text != rule {
		t.Errorf("the highest clause is %q", clause.Text)
	}
	if alone := Score(Clause{Text: rule, Index: 1, Count: 3}); score != alone {
		t.Errorf("its score is %d, and %d alone", score, alone)
	}
	if _, score := learned.Best(" … ", ""); score != math.MinInt {
		t.Errorf("a message without words has the score %d", score)
	}
}

// TestReadsABoundedPart: what follows the bound changes nothing.
func TestReadsABoundedPart(t *testing.T) {
	for _, word := range []string{"rule ", "правило ", "规则", "👍🏽 x "} {
		long := strings.Repeat(word, 2000)
		if a, b := Score(Clause{Text: long}), Score(Clause{Text: long + " never"}); a != b {
			t.Errorf("%q: %d and %d", word, a, b)
		}
	}
}

func TestScoreAllocatesNothing(t *testing.T) {
	s := Clause{Text: "the second, but keep `a.go` as it is", Before: "the first or the second?"}
	if n := testing.AllocsPerRun(100, func() { Score(s) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestChanges: the later sentence of each row changes the first earlier one and not the second.
func TestChanges(t *testing.T) {
	for _, row := range [][3]string{
		{"we switch to Vitest, Mocha is history", "unit tests run with Mocha", "log lines are JSON"},
		{"forget what I said about the length of lines", "lines of at most 80 characters in length", "tests come first"},
		{"American spelling is off, we spell British from here on", "American spelling everywhere", "the American office sleeps until three"},
		{"Kommentare ab sofort doch auf Englisch statt auf Deutsch", "Kommentare schreiben wir auf Deutsch", "Namen klein"},
	} {
		changed, other := learned.Changes(row[0], row[1]), learned.Changes(row[0], row[2])
		if changed < 0 || other >= changed {
			t.Errorf("%q: %d of %q, %d of %q", row[0], changed, row[1], other, row[2])
		}
	}
	if asked, changed := learned.Changes("which version of Mocha do we have?", "unit tests run with Mocha"), learned.Changes("Mocha is out, we use Vitest now", "unit tests run with Mocha"); asked >= changed {
		t.Errorf("a question has %d, a change %d", asked, changed)
	}
	if got := learned.Changes("", "tests"); got != lowest {
		t.Errorf("nothing changes a rule by %d", got)
	}
}

func TestStems(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a b": 0, "Tests testen": 2, "testing tests": 2, "spelling spells": 1, "commit 12 commits": 2,
		"变量名": 2, "legacy目录": 2, "don't": 1, "한국어 테스트": 2,
	} {
		if got := Stems(text); len(got) != want {
			t.Errorf("%q has %d stems, want %d", text, len(got), want)
		}
	}
}

// TestClassesAreReadable: each class has a name of its own and some words, none of which it
// has twice.
func TestClassesAreReadable(t *testing.T) {
	names := map[string]bool{}
	for line := range strings.Lines(classText) {
		words := strings.Fields(line)
		if len(words) < 5 || names[words[0]] {
			t.Errorf("class %.40q: too few words, or its name is taken", line)
			continue
		}
		names[words[0]] = true
		slices.Sort(words[1:])
		if n := len(words) - 1; n != len(slices.Compact(words[1:])) {
			t.Errorf("class %s has a word twice", words[0])
		}
		for _, word := range words[1:] {
			if n := utf8.RuneCountInString(word); n > longestWord {
				t.Errorf("%q has %d characters, more than %d are never looked up", word, n, longestWord)
			}
		}
	}
}

// TestHostile: a message of one megabyte is divided into clauses that hold at most the message,
// of which a bounded part is read.
func TestHostile(t *testing.T) {
	for _, part := range []string{"a", "a.", "never. ", "`", "```\n", "不", "。", "> x\n", "\xff", "a;b; ", "don't", " "} {
		message, end := strings.Repeat(part, 1<<20/len(part)), 0
		for i, c := range Clauses(message, message) {
			if c.From < end || c.To > len(message) {
				t.Fatalf("%q: clause %d is %v, behind %d", part, i, c.Span, end)
			}
			end = c.To
			if i%1000 == 0 { // the work on each is bounded
				features := 0
				c.Features(func(int, uint32) { features++ })
				if features > 20_000 {
					t.Errorf("%q: clause %d has %d features", part, i, features)
				}
			}
		}
		learned.Changes(message, message)
	}
}

func FuzzBest(f *testing.F) {
	f.Add("never push. ok?", "shall I push?")
	f.Add("`a` b'c ’ 1.2 ```\n~~~", "\xff")
	f.Add("不要动。！；", "。")
	f.Fuzz(func(t *testing.T, message, before string) {
		end := 0
		for _, c := range Clauses(message, before) {
			if c.From < end || c.To <= c.From || c.To > len(message) || c.Text != message[c.From:c.To] {
				t.Fatalf("clause %v of %q behind %d", c, message, end)
			}
			end = c.To
			c.Features(func(group int, weight uint32) {
				if p := parts[group]; weight < p.from || weight >= p.from+1<<p.bits || weight >= Weights {
					t.Fatalf("weight %d is not of group %d", weight, group)
				}
			})
		}
		if _, score := learned.Best(message, before); end > 0 && (score < -1_000_000 || score > 1_000_000) {
			t.Fatalf("score %d", score)
		}
	})
}

func BenchmarkScore(b *testing.B) {
	s := Clause{Text: "for the exports we take commas and no semicolons, and dates stay in ISO form", Before: "Shall I write the export with commas or semicolons?"}
	for b.Loop() {
		Score(s)
	}
}

func BenchmarkChanges(b *testing.B) {
	for b.Loop() {
		learned.Changes("we switch to Vitest, Mocha is history", "unit tests run with Mocha")
	}
}
