package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

// Embedder turns texts into vectors: texts of similar meaning have similar vectors.
// Implementations are safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, all of one dimension. They need not be
	// normalized; a zero vector is similar to none.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Hybrid searches an index by words and by meaning, and merges the two rankings by
// reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). It caches the vectors
// of texts. Embedder must be set; a Hybrid is safe for concurrent use and must not be
// copied after its first use.
type Hybrid struct {
	Embedder Embedder

	initOnce    sync.Once
	vectorCache *lru.Cache[[32]byte, []float32]
}

const (
	// fusionConstant is the constant of reciprocal rank fusion that its authors use.
	fusionConstant = 60
	// pieceBytes is how much text a vector stands for, and maxPieces how many vectors a
	// text may have.
	pieceBytes, maxPieces = 2000, 16
	// embedBatch is how many texts are embedded at once.
	embedBatch = 64
	// maxVectors bounds the cache.
	maxVectors = 50_000
	// maxFused is how many of each ranking are fused.
	maxFused = 100
	// similarExcerptBytes is the length of the excerpt of a text without words of the query.
	similarExcerptBytes = 600
	// minCosine is the least similarity of a match: unrelated texts have up to that.
	minCosine = 0.2
)

// Search is Index.Search with the merged ranking. The error is that of the Embedder, or says
// that it returned the wrong vectors.
func (h *Hybrid) Search(ctx context.Context, x *Index, query string, o *Options) ([]Hit, error) {
	o = cmp.Or(o, &Options{})
	q := newQuestion(query, o, x.newest)
	if q.text == "" || x.Len() == 0 {
		return x.Search(query, o), nil
	}
	similar, at, err := h.similar(ctx, x, &q)
	if err != nil {
		return nil, fmt.Errorf("recall.Search: %w", err)
	}
	scores := make([]float64, x.Len())
	r := x.rank(q)
	wordScores := r.scores
	for n, i := range r.found[:min(len(r.found), maxFused)] {
		scores[i] += 1 / float64(fusionConstant+n+1)
	}
	for n, i := range similar[:min(len(similar), maxFused)] {
		scores[i] += 1 / float64(fusionConstant+n+1)
	}
	var found []int
	for i, score := range scores {
		if score > 0 {
			found = append(found, i)
		}
	}
	x.sortByScore(found, scores)
	r.found, r.scores = found, scores
	hits := x.buildHits(r, o)
	for n := range hits {
		for _, i := range found {
			e := &x.entries[i]
			if from, ok := at[i]; ok && wordScores[i] == 0 && e.MessageID == hits[n].MessageID && e.ThreadID == hits[n].ThreadID {
				// It has no word of the query: show the most similar piece.
				rest := e.Text[from:]
				hits[n].Excerpt, hits[n].Near = rest[:clip.Boundary(rest, similarExcerptBytes)], nil
				hits[n].setPosition(e.Text, from)
				break
			}
		}
	}
	return hits, nil
}

// similar ranks the entries by their most similar piece, and returns where that piece
// begins.
func (h *Hybrid) similar(ctx context.Context, x *Index, q *question) (ranked []int, at map[int]int, err error) {
	texts := []string{q.text}
	type piece struct{ entry, from int }
	var of []piece
	for i := range x.entries {
		if !q.only.admits(x, i) {
			continue
		}
		from := 0
		for _, p := range pieces(x.entries[i].Text) {
			texts = append(texts, p)
			of = append(of, piece{i, from})
			from += len(p)
		}
	}
	vectors, err := h.vectors(ctx, texts)
	if err != nil {
		return nil, nil, err
	}
	best := map[int]float64{}
	at = map[int]int{}
	for n, p := range of {
		c := cosine(vectors[0], vectors[n+1])
		if old, seen := best[p.entry]; c >= minCosine && (!seen || c > old) {
			best[p.entry], at[p.entry] = c, p.from
		}
	}
	for i := range best {
		ranked = append(ranked, i)
	}
	slices.SortFunc(ranked, func(i, j int) int {
		return cmp.Or(cmp.Compare(best[j], best[i]), compareNewestFirst(&x.entries[i], &x.entries[j]), cmp.Compare(i, j))
	})
	return ranked, at, nil
}

// pieces cuts a text into pieces that one vector can stand for.
func pieces(text string) []string {
	var out []string
	for strings.TrimSpace(text) != "" && len(out) < maxPieces {
		at := len(text)
		if at > pieceBytes {
			at = clip.Boundary(text, pieceBytes)
			if line := strings.LastIndexByte(text[:at], '\n'); line > at/2 {
				at = line + 1
			}
			at = max(at, 1)
		}
		out = append(out, text[:at])
		text = text[at:]
	}
	return out
}

var errVectors = errors.New("the embedder returned a wrong number of vectors, or vectors of different dimensions")

// vectors embeds texts, or takes their vectors from the cache.
func (h *Hybrid) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var missing []int
	keys := make([][32]byte, len(texts))
	h.initOnce.Do(func() { h.vectorCache = lru.New[[32]byte, []float32](maxVectors) })
	for i, text := range texts {
		keys[i] = sha256.Sum256([]byte(text))
		if v, ok := h.vectorCache.Get(keys[i]); ok {
			out[i] = v
		} else {
			missing = append(missing, i)
		}
	}
	for group := range slices.Chunk(missing, embedBatch) {
		ask := make([]string, len(group))
		for n, i := range group {
			ask[n] = texts[i]
		}
		got, err := h.Embedder.Embed(ctx, ask)
		if err != nil {
			return nil, err
		}
		if len(got) != len(ask) {
			return nil, errVectors
		}
		for n, i := range group {
			out[i] = got[n]
			h.vectorCache.Put(keys[i], got[n], 1)
		}
	}
	for _, v := range out {
		if len(v) == 0 || len(v) != len(out[0]) {
			return nil, errVectors
		}
	}
	return out, nil
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
