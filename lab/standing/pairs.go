package standing

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
)

// Pair is two sentences of a person, and whether the later changes or takes back the earlier.
type Pair struct {
	// File is the file's name without its ending; each is by a hand of its own.
	File, Lang     string
	Earlier, Later string
	Changes        bool
}

// ReadPairs reads the pairs of all *.txt files of a folder: a line @LANG heads a group; a line
// is + (it does) or - (it does not), the earlier sentence, " ~~ " and the later.
func ReadPairs(dir string) ([]Pair, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no *.txt with pairs in it (%w)", dir, os.ErrNotExist)
	}
	slices.Sort(files)
	var all []Pair
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p := Pair{File: strings.TrimSuffix(filepath.Base(name), ".txt")}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.TrimSpace(line)
			if head, ok := strings.CutPrefix(line, "@"); ok {
				p.Lang = head
				continue
			}
			sign, rest, _ := strings.Cut(line, " ")
			var ok bool
			p.Earlier, p.Later, ok = strings.Cut(rest, " ~~ ")
			if p.Changes = sign == "+"; !p.Changes && sign != "-" || !ok || p.Lang == "" {
				return nil, fmt.Errorf("%s:%d: want a line @LANG first, then + or -, and two sentences with ~~ between: %.40q", name, n, line)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// fitChanges learns what the score of a change is made of, by logistic regression. The rest of
// the table has been learned.
func (t table) fitChanges(pairs []Pair) {
	type point struct {
		facts [standing.Facts]float64
		sign  float64
	}
	var points []point
	for _, p := range pairs {
		facts, ok := standing.Table(t).Facts(p.Later, p.Earlier)
		if !ok {
			continue
		}
		at := point{sign: -1}
		if p.Changes {
			at.sign = 1
		}
		for i, x := range facts {
			at.facts[i] = float64(x) / 100
		}
		points = append(points, at)
	}
	var weights, squares [standing.Facts + 1]float64
	for range 2000 {
		var slopes [standing.Facts + 1]float64
		for _, p := range points {
			odds := weights[standing.Facts]
			for i, x := range p.facts {
				odds += float64(weights[i] * x)
			}
			slope := -p.sign / (1 + exp(p.sign*odds))
			for i, x := range p.facts {
				slopes[i] += float64(slope * x)
			}
			slopes[standing.Facts] += slope
		}
		for i, slope := range slopes {
			descend(&weights[i], &squares[i], slope+float64(.3*weights[i]))
		}
	}
	for i, w := range weights {
		x := w * unit
		if i < standing.Facts {
			x /= 100
		}
		t.setNumber(standing.Numbers-1-standing.Facts+i, x)
	}
}

// MeasureChanges tells how well changes are found, each file by what was learned from the
// pairs of the others.
func MeasureChanges(all []Labelled, pairs []Pair) string {
	parts := map[string][]Scored{}
	tables := map[string]standing.Table{}
	for _, p := range pairs {
		if tables[p.File] == "" {
			tables[p.File] = Train(all, slices.DeleteFunc(slices.Clone(pairs), func(o Pair) bool { return o.File == p.File }))
		}
		s := Scored{Labelled{Lang: p.Lang, Stands: p.Changes}, tables[p.File].Changes(p.Later, p.Earlier)}
		for _, part := range []string{"all", "hand " + p.File, "language " + p.Lang} {
			parts[part] = append(parts[part], s)
		}
	}
	t := texttable.Table{Head: []string{"changes", "pairs", "linked", "av.prec.", "from 0: precision", "recall"}}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		r, found, hits := rank(name, parts[name]), 0, 0
		for _, s := range parts[name] {
			if s.Score >= 0 {
				found++
				if s.Stands {
					hits++
				}
			}
		}
		t.Row(name, clip.Number(r.Sentences), clip.Number(r.Stand), share(r.AveragePrecision),
			share(float64(hits)/float64(max(1, found))), share(float64(hits)/float64(max(1, r.Stand))))
	}
	var b strings.Builder
	t.Write(&b)
	return b.String()
}
