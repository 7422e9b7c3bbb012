package references

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// sampleSize prints a sample of what the extractor finds, for a person to judge:
//
//	go test ./lab/eval/references -run TestSampleOfIdentifiers -v -args -sample 200
//
// lab/README.md holds what the last audit found.
var sampleSize = flag.Int("sample", 0, "print so many identifiers that the extractor found, with where they stand")

// drawn is an identifier and the words around it.
type drawn struct{ session, kind, value, line string }

// draw takes identifiers from a set: half of them from all that the messages
// hold, half from the references of its moments, which are what the figures are
// made of. Each session and each of its types has the same chance, so that one
// long log does not fill the sample.
func draw(set *Set, n int) []drawn {
	rng := rand.New(rand.NewPCG(2026, 11))
	around := func(text string, at, end int) string {
		return strings.Join(strings.Fields(strings.ToValidUTF8(text[max(0, at-60):at]+"⟦"+text[at:end]+"⟧"+text[end:min(len(text), end+40)], "")), " ")
	}
	taken := map[string]bool{}
	var out []drawn
	add := func(d drawn) {
		if key := d.kind + "\x00" + d.value; !taken[key] {
			taken[key] = true
			out = append(out, d)
		}
	}
	for tries := 0; len(out) < n/2 && tries < 100*n; tries++ {
		s := set.Sessions[rng.IntN(len(set.Sessions))]
		text := s.Texts[rng.IntN(len(s.Texts))]
		all := ident.All(text)
		if len(all) == 0 {
			continue
		}
		var kinds []ident.Type
		for _, x := range all {
			if !slices.Contains(kinds, x.Type) {
				kinds = append(kinds, x.Type)
			}
		}
		kind := kinds[rng.IntN(len(kinds))]
		all = slices.DeleteFunc(all, func(x ident.Ident) bool { return x.Type != kind })
		x := all[rng.IntN(len(all))]
		add(drawn{s.Name, kind.String(), x.Norm, around(text, x.At, x.At+len(x.Surface))})
	}
	for tries := 0; len(out) < n && tries < 100*n; tries++ {
		s := set.Sessions[rng.IntN(len(set.Sessions))]
		if len(s.Steps) < 3 {
			continue
		}
		refs := s.Moment(1 + rng.IntN(len(s.Steps)-1)).Needs
		if len(refs) == 0 {
			continue
		}
		r := refs[rng.IntN(len(refs))]
		d := drawn{s.Name, "reference " + r.Type.String(), r.Norm, ""}
		text := s.Texts[r.Seen[0].Pos]
		s.Find.Find(text, func(id int32, at, end int) {
			if id == r.ID && d.line == "" {
				d.line = around(text, at, end)
			}
		})
		add(d)
	}
	return out
}

// TestSampleOfIdentifiers: a sample for an audit by hand (benchmarks 6a.11) is the
// same each time, and each of it stands where it is said to.
func TestSampleOfIdentifiers(t *testing.T) {
	if *sampleSize > 0 {
		for i, d := range draw(load(t, corpus.Dir(t, "transcripts")), *sampleSize) {
			fmt.Printf("%3d %-18s %-40q %s\n", i+1, d.kind, d.value, d.line)
		}
		return
	}
	set := load(t, "../../../testdata/sessions/import-csv.openai-chat.json", "../../../testdata/sessions/fix-retry.claude-code.jsonl")
	sample := draw(set, 20)
	if len(sample) != 20 || !slices.Equal(sample, draw(set, 20)) {
		t.Fatalf("%d of 20, or another sample: %v", len(sample), sample)
	}
	for _, d := range sample {
		if !strings.Contains(d.line, "⟦") {
			t.Errorf("%+v stands nowhere", d)
		}
	}
}
