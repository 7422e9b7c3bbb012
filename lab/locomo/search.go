package locomo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/texttable"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// SearchReport says how well a search finds the turns that answers stand in, over all questions
// and by category of the questions.
type SearchReport struct {
	All        Finds         `json:"all"`
	Categories map[int]Finds `json:"categories"`
}

// Finds are shares of questions.
type Finds struct {
	Questions int `json:"questions"`
	// Session: the first hit is in a session with evidence. Sessions: one of the first five
	// hits is. Turn and Turns: it is the evidence itself.
	Session  float64 `json:"session_first"`
	Sessions float64 `json:"session_among_five"`
	Turn     float64 `json:"turn_first"`
	Turns    float64 `json:"turn_among_five"`
}

// among is how many hits count.
const among = 5

// Search searches each conversation of a file for its questions, those without an answer
// included: one thread a conversation, one message a turn, dated by its session. first and last
// choose conversations, counting from 1; a last of 0 is the last of all.
func Search(ctx context.Context, path string, first, last int) (*SearchReport, error) {
	all, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("locomo.Search: %w", err)
	}
	if last == 0 {
		last = len(all)
	}
	if first < 1 || last < first || last > len(all) {
		return nil, fmt.Errorf("locomo.Search: %s: conversations %d to %d: want some of 1 to %d", path, first, last, len(all))
	}
	counted := map[int]Finds{}
	for _, d := range all[first-1 : last] {
		log, err := d.dated()
		if err != nil {
			return nil, fmt.Errorf("locomo.Search: %w", err)
		}
		index, err := recall.NewIndexContext(ctx, recall.All(log))
		if err != nil {
			return nil, fmt.Errorf("locomo.Search: %w", err)
		}
		for _, q := range d.questions {
			counted[q.category] = counted[q.category].plus(d.found(index, log, q))
		}
	}
	r := &SearchReport{Categories: map[int]Finds{}}
	for category, f := range counted {
		r.All = r.All.plus(f)
		r.Categories[category] = f.shares()
	}
	r.All = r.All.shares()
	return r, nil
}

// dated is the conversation as a log that knows when its messages were said, instead of having the
// dates in their texts.
func (d *dialogue) dated() (*thread.Thread, error) {
	messages := slices.Clone(d.thread.Messages())
	for i := range messages {
		m := &messages[i]
		m.ID, m.Time = "", d.times[d.sessions[i]]
		text := d.texts[i]
		if date, rest, is := strings.Cut(text, "\n"); is && strings.HasPrefix(date, "(") && !m.Time.IsZero() {
			text = rest
		}
		m.Parts = []thread.Part{thread.Text{Text: text}}
	}
	return thread.New(d.thread.ID()).Append(messages...)
}

// found is what the first hits for a question are.
func (d *dialogue) found(index *recall.Index, log *thread.Thread, q question) Finds {
	f := Finds{Questions: 1}
	for n, hit := range index.Search(q.text, &recall.Options{Limit: among}) {
		at, ok := log.Index(hit.MessageID)
		if !ok {
			continue
		}
		turn := slices.Contains(q.evidence, at)
		session := slices.ContainsFunc(q.evidence, func(e int) bool { return d.sessions[e] == d.sessions[at] })
		if n == 0 {
			f.Session, f.Turn = one(session), one(turn)
		}
		f.Sessions, f.Turns = max(f.Sessions, one(session)), max(f.Turns, one(turn))
	}
	return f
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (f Finds) plus(o Finds) Finds {
	return Finds{f.Questions + o.Questions, f.Session + o.Session, f.Sessions + o.Sessions, f.Turn + o.Turn, f.Turns + o.Turns}
}

func (f Finds) shares() Finds {
	n := float64(max(1, f.Questions))
	return Finds{f.Questions, f.Session / n, f.Sessions / n, f.Turn / n, f.Turns / n}
}

// WriteTable writes the report for people.
func (r *SearchReport) WriteTable(w io.Writer) error {
	g := texttable.Table{Head: []string{"category", "questions", "session, first", "among five", "turn, first", "among five"}}
	row := func(name string, f Finds) {
		g.Row(name, fmt.Sprint(f.Questions), fmt.Sprintf("%.3f", f.Session), fmt.Sprintf("%.3f", f.Sessions), fmt.Sprintf("%.3f", f.Turn), fmt.Sprintf("%.3f", f.Turns))
	}
	for _, category := range slices.Sorted(maps.Keys(r.Categories)) {
		row(fmt.Sprint(category), r.Categories[category])
	}
	row("all", r.All)
	var b strings.Builder
	g.Write(&b)
	_, err := io.WriteString(w, b.String())
	return err
}
