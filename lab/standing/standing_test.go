package standing

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/standing"
)

// TestTheTableIsLearnedFromTheSentences: the table of internal/standing is what these
// sentences give, byte by byte.
func TestTheTableIsLearnedFromTheSentences(t *testing.T) {
	all, err := ReadFolder("sentences")
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := ReadPairs("pairs")
	if err != nil {
		t.Fatal(err)
	}
	if got := Train(all, pairs); got != standing.Learned() {
		t.Errorf("another table than internal/standing/table.bin: go run . standing standing/sentences -o ../internal/standing/table.bin, in lab; then set its Version")
	}
}

// TestSentencesAreWrittenOnce: a sentence that is there twice would weigh twice, and one that
// is there with both labels says nothing.
func TestSentencesAreWrittenOnce(t *testing.T) {
	all, err := ReadFolder("sentences")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, l := range all {
		key := strings.ToLower(strings.Trim(l.Text, " .!")) + " ~~ " + strings.ToLower(l.Before)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s: %q", other, l.File, l.Text)
		}
		seen[key] = l.File
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a_x.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadFolder(dir); err == nil {
		t.Error("no error for an empty folder")
	}
	write("@de coding\nD die zweite ~~ Erste oder zweite?\n\nr ja\n")
	all, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Labelled{
		{Lang: "de", Domain: "coding", Kind: 'D', Text: "die zweite", Before: "Erste oder zweite?", Stands: true, File: "a_x", Hand: "a"},
		{Lang: "de", Domain: "coding", Kind: 'r', Text: "ja", File: "a_x", Hand: "a"},
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"R no head\n", "@en x\nZ unknown letter\n", "@en x\nR\n", "@en x\nRule of two letters\n", "@en x\nR \xff\n"} {
		write(bad)
		if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), "a_x.txt:") {
			t.Errorf("%q: error %v, want one that names the line", bad, err)
		}
	}
}

// TestMeasure: a ranking worked out by hand.
func TestMeasure(t *testing.T) {
	scored := func(lang string, score int, kind byte) Scored {
		return Scored{Labelled{Lang: lang, Kind: kind, Text: "text", Stands: kind < 'a'}, score}
	}
	all := []Scored{
		scored("en", 9, 'R'), scored("en", 7, 'r'), scored("de", 8, 'B'), scored("de", 5, 'q'), scored("en", 5, 'D'),
		scored("en", 1, 'f'), scored("en", 0, 'f'), scored("en", 0, 'f'), scored("de", 0, 'f'), scored("en", -1, 'f'),
	}
	r := Measure(all)
	got := r.Rankings[0]
	want := Ranking{
		Of: "all", Sentences: 10, Stand: 3,
		AveragePrecision:  (1 + 1 + 3./5) / 3, // the last shares its rank with what does not stand
		RecallAtPrecision: 2. / 3,
		Top:               [3]Share{{1, 2. / 3}, {2. / 3, 2. / 3}, {2. / 4, 2. / 3}},
	}
	if math.Abs(got.AveragePrecision-want.AveragePrecision) < 1e-9 {
		got.AveragePrecision = want.AveragePrecision
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var parts []string
	for _, p := range r.Rankings {
		parts = append(parts, p.Of)
	}
	if want := []string{"all", "English, short", "other languages", "language de", "language en"}; !slices.Equal(parts, want) {
		t.Errorf("parts %q, want %q", parts, want)
	}
	for _, want := range []struct {
		share, frequency float64
		score            int
		recall           float64
	}{{.9, .3, 8, 2. / 3}, {.6, .3, 5, 1}, {.6, .1, 8, 2. / 3}} {
		if score, recall := Above(all, want.share, want.frequency); score != want.score || math.Abs(recall-want.recall) > 1e-9 {
			t.Errorf("%g of what is above %d (recall %g) stand where %g do, want %d (%g)", want.share, score, recall, want.frequency, want.score, want.recall)
		}
	}
}

// TestFolds: no hand is scored by a table that was learned from it.
func TestFolds(t *testing.T) {
	var all []Labelled
	for _, hand := range []string{"a", "b"} {
		for _, text := range []string{"never touch main", "the zebra rule holds", "always ask first"} {
			all = append(all, Labelled{Hand: hand, Lang: "en", Kind: 'R', Text: text, Stands: hand == "a"})
		}
		all = append(all, Labelled{Hand: hand, Lang: "en", Kind: 'r', Text: "run it once", Stands: hand != "a"})
	}
	scored, _ := Folds(all)
	if len(scored) != len(all) {
		t.Fatalf("%d scores of %d sentences", len(scored), len(all))
	}
	// The hands disagree about everything: what one says is wrong for the other.
	if got := rank("all", scored).AveragePrecision; got > .6 {
		t.Errorf("average precision %.2f: a hand was scored by its own table", got)
	}
}

// TestJoined: a message holds one sentence that may stand, and three that do not.
func TestJoined(t *testing.T) {
	var all []Labelled
	for i := range 8 {
		all = append(all, Labelled{Hand: "a", Lang: "en", Text: fmt.Sprintf("this is fact %d now", i), Kind: 'f'})
	}
	all = append(all, Labelled{Hand: "a", Lang: "en", Text: "a rule!", Kind: 'R', Stands: true}, Labelled{Hand: "b", Lang: "en", Text: "few others", Kind: 'f'})
	joined := Joined(all)
	if len(joined) != 9 {
		t.Fatalf("%d messages, want 9", len(joined))
	}
	last := joined[8]
	if !last.Stands || strings.Count(last.Text, "fact") != 3 || !strings.Contains(last.Text, "a rule! ") || lengthOf(Scored{Labelled: last}) != "long" {
		t.Errorf("joined: %+v", last)
	}
	if joined[0].Stands || strings.Contains(joined[0].Text, "rule") {
		t.Errorf("joined: %+v", joined[0])
	}
}

func TestExp(t *testing.T) {
	for x := -20.0; x <= 20; x += .37 {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-3*want {
			t.Errorf("exp(%g) = %g, want %g", x, got, want)
		}
	}
}

func TestReadPairs(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "x.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadPairs(dir); err == nil {
		t.Error("no error for an empty folder")
	}
	write("@en\n+ use Mocha ~~ Mocha is out\n- use Mocha ~~ run Mocha\n")
	pairs, err := ReadPairs(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Pair{
		{File: "x", Lang: "en", Earlier: "use Mocha", Later: "Mocha is out", Changes: true},
		{File: "x", Lang: "en", Earlier: "use Mocha", Later: "run Mocha"},
	}
	if d := cmp.Diff(want, pairs); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"+ no ~~ head\n", "@en\n+ one alone\n", "@en\n* other ~~ sign\n"} {
		write(bad)
		if _, err := ReadPairs(dir); err == nil || !strings.Contains(err.Error(), "x.txt:") {
			t.Errorf("%q: error %v, want one that names the line", bad, err)
		}
	}
}

// TestRestyled: a sentence keeps its words.
func TestRestyled(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	seen := map[string]bool{}
	for range 100 {
		seen[restyled("Über alles.", random)] = true
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []string{"Über alles", "Über alles.", "über alles", "über alles."}) {
		t.Errorf("restyled: %q", got)
	}
}
