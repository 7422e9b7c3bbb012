package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Hit is a passage that a query found. One message may have several.
type Hit struct {
	ThreadID   string        `json:"thread_id"`
	MessageID  thread.ID     `json:"message_id"`
	Turn       int           `json:"turn"`
	Role       thread.Role   `json:"role"`
	Author     thread.Author `json:"author,omitempty"` // Entry.Author
	Tool       string        `json:"tool,omitempty"`
	Action     plan.Action   `json:"action"`
	ArtifactID string        `json:"artifact_id,omitempty"`
	Time       time.Time     `json:"time,omitzero"`
	// Call is Entry.Call. Of an excerpt from the middle of a call's arguments it is that call,
	// as Entry.Call tells it, and the argument: "Edit a.go x := 1 x := 2, in new_string".
	Call    string `json:"call,omitempty"`
	Summary string `json:"summary"`
	// Excerpt has the lines of the text around the match, or a part of a long line, with an
	// ellipsis where the line goes on. Escapes in JSON are decoded, but for the piece that
	// Hybrid shows of an entry that has no word of the query. Line is the number of its
	// first line in the full text, counting from 1, and Lines the number of lines of the
	// text. Column is the character of that line that the excerpt begins with, counting from
	// 1, if it is not the first.
	Excerpt string `json:"excerpt"`
	Line    int    `json:"line"`
	Lines   int    `json:"lines"`
	Column  int    `json:"column,omitempty"`
	// Near are names of the same message that no excerpt shows. Others, which only the best
	// hit has, are names of messages without a hit. Both have the most likely ones first.
	Near   []string `json:"near,omitempty"`
	Others []string `json:"others,omitempty"`
	Score  float64  `json:"score"`
	// Before and After are what was said beside this message in the same thread: the nearest
	// searched messages, at most three away, that are no results, have no Author and do more than
	// call tools. They are nil where the answer shows them elsewhere or has no room for them.
	Before *Neighbor `json:"before,omitempty"`
	After  *Neighbor `json:"after,omitempty"`
	// Missing, which only the best hit has, are the words and the phrases in quotes of a short query
	// that no searched message contains: then the hits are only what comes nearest.
	Missing []string `json:"missing,omitempty"`
	// Also are other messages with the same text, latest first, and then those with the same
	// lines around the match, such as another reading of a file.
	Also []thread.ID `json:"also,omitempty"`
}

// nearestOfName is how many hits a name gets that no message holds: what comes nearest is another thing.
const nearestOfName = 2

// Neighbor is a message near a hit, in one line of at most about 240 characters.
type Neighbor struct {
	MessageID thread.ID   `json:"message_id"`
	Role      thread.Role `json:"role"`
	Text      string      `json:"text"`
}

// buildHits makes hits of the entries that were found.
func (x *Index) buildHits(r *ranking, o *Options) []Hit {
	found, scores, terms := r.found, r.scores, r.terms
	if len(found) == 0 {
		return nil
	}
	limit, tokens := cmp.Or(max(o.Limit, 0), DefaultLimit), o.Tokens
	if tokens <= 0 {
		tokens = max(limit, 3) * DefaultTokens / DefaultLimit
	}
	x.spread(found, scores)
	said := map[string]int{}
	also := map[int][]thread.ID{}
	var shown []int
	for _, i := range found {
		e := &x.entries[i]
		if n, same := said[e.Text]; same && e.Text != "" {
			if x.entries[n].MessageID != e.MessageID && !slices.Contains(also[n], e.MessageID) {
				also[n] = append(also[n], e.MessageID)
			}
			continue
		}
		said[e.Text] = i
		shown = append(shown, i)
	}
	weight := func(i int) float64 {
		e, w := &x.entries[i], minEntryWeight+(1-minEntryWeight)*math.Sqrt(scores[i]/scores[found[0]])
		if e.Tool != "" {
			w *= resultWeight
		}
		return w
	}
	isShort := len(terms) <= fewTerms
	share, beside := nameShare, 0
	if isShort {
		share, beside = nameShareShort, int(neighborShare*float64(tokens))
	}
	if len(r.missing) > 0 && !strings.ContainsAny(r.text, " \n") {
		limit = min(limit, nearestOfName)
	}
	names := int(share * float64(tokens))
	c := x.newChooser(shown, weight, terms, r.phrases, tokens-names-beside)
	if isShort { // a question: its best messages, in their order
		c.chooseBest(shown, scores, limit)
	}
	c.choose(limit, shown)
	spans := c.spans
	// Entries that match only by their call, or in part of a word, show their beginning.
	for _, i := range shown {
		if len(spans) >= limit || c.tokensLeft <= 0 && len(spans) > 0 {
			break
		}
		if !slices.ContainsFunc(spans, func(s span) bool { return c.rows[s.from].entry == int32(i) || slices.Contains(s.copies, int32(i)) }) {
			score := scores[i]
			if n := len(spans); n > 0 {
				score = min(score, spans[n-1].score)
			}
			spans = append(spans, c.startPassage(int(c.rowStarts[i]), score))
		}
	}
	spans = c.growAll(spans)
	hits := make([]Hit, len(spans))
	if isShort {
		c.tokensLeft = c.addNeighbors(hits, spans, beside+max(0, c.tokensLeft))
	}
	near, others := c.nearbyNames(r.text, shown, spans, terms, names+max(0, c.tokensLeft))
	for n, s := range spans {
		i := int(c.rows[s.from].entry)
		e := &x.entries[i]
		h := &hits[n]
		*h = Hit{
			ThreadID: e.ThreadID, MessageID: e.MessageID, Turn: e.Turn, Role: e.Role, Author: e.Author, Tool: e.Tool, Action: e.Action,
			ArtifactID: e.ArtifactID, Time: e.Time, Call: e.Call, Summary: e.Summary, Score: s.score, Near: near[n], Also: also[i],
			Before: h.Before, After: h.After,
		}
		for _, same := range s.copies {
			for _, id := range append([]thread.ID{x.entries[same].MessageID}, also[int(same)]...) {
				if id != e.MessageID && !slices.Contains(h.Also, id) {
					h.Also = append(slices.Clip(h.Also), id)
				}
			}
		}
		if n == 0 {
			h.Others, h.Missing = others, r.missing
		}
		h.Excerpt = c.text(s)
		from, to := int(c.rows[s.from].from), int(c.rows[s.to].to)
		h.Lines = 1 + strings.Count(e.Text, "\n")
		at := originalOffset(e.Text, from)
		h.setPosition(e.Text, at)
		if e.Role == thread.Assistant {
			h.Call = callAround(e.Text, at)
		}
		if text := x.views[i]; from > 0 && text[from-1] != '\n' {
			h.Excerpt = "…" + h.Excerpt
		}
		if text := x.views[i]; to < len(text) && text[to] != '\n' {
			h.Excerpt += "…"
		}
	}
	return hits
}

const (
	// neighborShare is the share of an answer to a short question for the messages beside its hits.
	neighborShare = 0.12
	// maxNeighbor bounds a message beside a hit, in characters; neighborTokens is the text around it.
	maxNeighbor, neighborTokens = 240, 6
	// farthestNeighbor is how far away it may be, in messages.
	farthestNeighbor = 3
)

// addNeighbors sets what was said beside the hits and is not shown itself, the best hits first, and
// returns the tokens that are left.
func (c *passageChooser) addNeighbors(hits []Hit, spans []span, room int) int {
	shown := map[int]bool{}
	for _, s := range spans {
		shown[int(c.rows[s.from].entry)] = true
	}
	beside := func(of, step int) *Neighbor {
		for i := of + step; i >= 0 && i < len(c.x.entries) && (i-of)*step <= farthestNeighbor && c.x.entries[i].ThreadID == c.x.entries[of].ThreadID; i += step {
			e := &c.x.entries[i]
			if e.Tool != "" || e.Author != "" || strings.HasPrefix(e.Summary, callsSummary) {
				continue
			}
			text := neighborText(c.x, i)
			cost := estimateTokens(text) + neighborTokens
			if shown[i] || cost > room {
				return nil
			}
			room -= cost
			shown[i] = true
			return &Neighbor{MessageID: e.MessageID, Role: e.Role, Text: text}
		}
		return nil
	}
	for n, s := range spans {
		i := int(c.rows[s.from].entry)
		hits[n].Before, hits[n].After = beside(i, -1), beside(i, 1)
	}
	return room
}

// neighborText is what an entry says in one line: a short text whole but for its calls, of a question
// what it asks at its end, of others the summary.
func neighborText(x *Index, i int) string {
	text := strings.TrimSpace(x.entries[i].Text)
	if len(text) <= maxNeighbor {
		said := slices.DeleteFunc(strings.Split(text, "\n"), isEscapedJSON)
		return clip.Line(strings.Join(said, " "), maxNeighbor)
	}
	if x.asks[i] {
		return clip.Line(text[strings.LastIndexByte(text, '\n')+1:], maxNeighbor)
	}
	return cmp.Or(x.entries[i].Summary, clip.Line(text, maxNeighbor))
}

// setPosition sets Line and Column for an excerpt that begins at byte `at` of the text.
func (h *Hit) setPosition(text string, at int) {
	line := strings.LastIndexByte(text[:at], '\n') + 1
	h.Line, h.Column = 1+strings.Count(text[:line], "\n"), 0
	if at > line {
		h.Column = 1 + utf8.RuneCountInString(text[line:at])
	}
}

// callAround returns the call whose arguments byte `at` of a FullText stands in, in one line,
// and which argument it is. It is empty for other places, and where the call's name stands
// in the excerpt.
func callAround(text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	name, _, _ := strings.Cut(line, "{")
	if at <= from+len(name) || !isEscapedJSON(line) {
		return ""
	}
	tool, arguments := strings.TrimSpace(name), line[len(name):]
	if tool == "" || strings.ContainsAny(tool, " \t") {
		return "" // words before an object
	}
	call := clip.Line(tool+" "+argumentValues(arguments, maxCall, maxValue), maxCall)
	gjson.Parse(arguments).ForEach(func(key, value gjson.Result) bool {
		inside := at - from - len(name) - value.Index
		if inside >= 0 && inside < len(value.Raw) {
			call += ", in " + clip.Line(key.String(), maxValue)
		}
		return inside >= len(value.Raw)
	})
	return call
}
