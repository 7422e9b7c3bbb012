package learn

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// TestFit: the fit finds the odds that the samples were made with.
func TestFit(t *testing.T) {
	var all []sample
	for n := range 40_000 {
		a, b := uint8(n%2), uint8(n/2%3)
		// One in two, four, eight … by the sum of the bins.
		all = append(all, sample{[]uint8{a, b}, n/6%(2<<(a+b)) == 0})
	}
	var o Odds
	o.fit(all)
	for a := range o.Bins[0] {
		for b := range o.Bins[1] {
			got := 1 / (1 + math.Exp(-o.Base-o.Bins[0][a]-o.Bins[1][b]))
			if want := 1 / float64(int(2)<<(a+b)); math.Abs(got-want) > 0.05 {
				t.Errorf("bins %d and %d: %.3f, want %.3f", a, b, got, want)
			}
		}
	}
	if o.Seen[0][0]+o.Seen[0][1] != o.Identifiers || o.Identifiers != len(all) {
		t.Errorf("%v of %d", o.Seen, o.Identifiers)
	}
}

// TestLearn: the same sessions give the same table, and what is used again lately
// has better odds than what was never in a call.
func TestLearn(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), "entire-cli", "mid-8*"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := references.Load(t.Context(), files, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Learn(context.Background(), set, references.All)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Learn(context.Background(), set, references.All)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(o, again) {
		t.Error("another table the second time")
	}
	if o.Used == 0 || o.Used >= o.Identifiers {
		t.Fatalf("%d of %d used", o.Used, o.Identifiers)
	}
	if ages := o.Bins[1]; ages[0] <= ages[len(ages)-1] {
		t.Errorf("the newest have odds %.2f, the oldest %.2f", ages[0], ages[len(ages)-1])
	}
}
