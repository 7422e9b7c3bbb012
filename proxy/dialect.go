package proxy

import (
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// dialect is what an exchange must know of an API: its requests and its answers.
type dialect struct {
	codec
	answerForm
}

// codec reads and writes the requests of an API, and reads its answers.
type codec interface {
	wire.Codec
	wire.Answers
}

// answerForm makes one answer of several.
type answerForm interface {
	// canReadAnswer reports whether the answer to a request comes in a form that is
	// read here.
	canReadAnswer(r *http.Request, body map[string]gjson.Result) bool
	// joinAnswers makes one answer of those of several rounds, without the calls that
	// are ours.
	joinAnswers(rounds [][]byte) []byte
	// translator does the same for streams.
	translator() translator
}

// translator makes one stream of those of several rounds. It holds back the
// events that end a round until it is known whether another one follows.
type translator interface {
	// takeEvent takes an event; it returns what the client gets for it, and whether
	// it is the last of its round.
	takeEvent(e sse.Event) (out []byte, last bool)
	// isComplete reports whether the round has come to its end.
	isComplete() bool
	// startRound begins another round. counted says that the one before came to its
	// end, so that its usage counts.
	startRound(counted bool)
	// end returns what was held back, or what stands in its place.
	end(e streamEnd) []byte
}

// streamRewinder takes back the end of a round. Every translator is one.
type streamRewinder interface {
	// savePosition remembers what the client was given, rewind goes back there: what came
	// since never reaches the client, and the round is over.
	savePosition()
	rewind()
	// heldContent is what of the answer itself came with the events that end the round.
	heldContent() []byte
}

// streamEnd is how a stream ends for the client. The zero value is as it came.
type streamEnd struct {
	// callsRemoved says that nothing is left of the calls for which the model stopped.
	callsRemoved bool
	// failure says why the answer goes no further; empty when it is whole.
	failure string
	// providerError is the failure as the provider wrote it, as JSON on one line; empty
	// where it wrote nothing of the kind.
	providerError string
}

// streamJoiner is what the translators have in common.
type streamJoiner struct {
	usageFields  usageFields
	round        int
	indexes      blockIndexes // of blocks, calls or items
	earlierUsage string       // usage of the earlier rounds
	roundUsage   string       // usage of this one
	heldEvents   []sse.Event
	complete     bool // this round came to its end
	savedNext    int64
}

func (j *streamJoiner) savePosition()       { j.savedNext = j.indexes.next }
func (j *streamJoiner) rewind()             { j.indexes.next = j.savedNext }
func (j *streamJoiner) heldContent() []byte { return nil }

func (j *streamJoiner) startRound(counted bool) {
	j.round++
	if counted {
		j.earlierUsage = j.totalUsage()
	}
	j.indexes.startRound()
	j.roundUsage, j.heldEvents, j.complete = "", nil, false
}

func (j *streamJoiner) isComplete() bool { return j.complete }

// totalUsage is that of all rounds so far.
func (j *streamJoiner) totalUsage() string {
	return j.usageFields.joinUsage(j.earlierUsage, j.roundUsage)
}

func (j *streamJoiner) holdBack(e sse.Event) { j.heldEvents = append(j.heldEvents, e) }

// releaseHeld gives what was held back, with what change makes of its data.
func (j *streamJoiner) releaseHeld(change func(data string) string) (out []byte) {
	for _, e := range j.heldEvents {
		out = append(out, e.WithData(change(e.Data))...)
	}
	j.heldEvents = nil
	return out
}

// failureEvent is the event that ends a stream with a failure: what the provider wrote of it, where
// that has a member, else the sentence in the API's form. It is nil where there is none.
func (end streamEnd) failureEvent(name, member, form string) []byte {
	switch {
	case gjson.Get(end.providerError, member).Exists():
		return sse.Event{Name: name}.WithData(end.providerError)
	case end.failure != "":
		return sse.Event{Name: name}.WithData(fmt.Sprintf(form, rawjson.Quote(end.failure)))
	}
	return nil
}

// blockIndexes says under which index the client is shown what a round numbers for
// itself: as the provider does, without what is ours and behind the earlier
// rounds.
type blockIndexes struct {
	shownAs            map[int64]int64 // -1 for what the client is not shown
	base, hidden, next int64
}

// assign gives the next index of the client to one of this round, if it is shown.
func (p *blockIndexes) assign(index int64, shown bool) {
	if p.shownAs == nil {
		p.shownAs = map[int64]int64{}
	}
	if !shown {
		p.shownAs[index] = -1
		p.hidden++
		return
	}
	to := p.base + index - p.hidden
	p.shownAs[index] = to
	p.next = max(p.next, to+1)
}

// shownIndex is the index under which the client knows one of this round; one that nobody announced keeps its own.
func (p *blockIndexes) shownIndex(index int64) (to int64, shown bool) {
	to, known := p.shownAs[index]
	if !known {
		return index, true
	}
	return to, to >= 0 || to == index
}

// startRound begins another round.
func (p *blockIndexes) startRound() { p.shownAs, p.base, p.hidden = nil, p.next, 0 }

// joinLists makes one answer of those of several rounds: the elements of a list that are shown,
// of all of them, and the rest of the last.
func joinLists(rounds [][]byte, list, usage string, f usageFields, shown func(v gjson.Result, round int) bool) string {
	var all []string
	used := ""
	for n, body := range rounds {
		all = append(all, rawElementsWhere(gjson.GetBytes(body, list), func(v gjson.Result) bool { return shown(v, n) })...)
		used = f.joinUsage(used, gjson.GetBytes(body, usage).Raw)
	}
	out := jsonedit.Set(string(rounds[len(rounds)-1]), list, rawjson.Array(all))
	if used != "" {
		out = jsonedit.Set(out, usage, used)
	}
	return out
}

// rawElementsWhere are the elements of a list that keep selects, as JSON.
func rawElementsWhere(list gjson.Result, keep func(gjson.Result) bool) (raw []string) {
	for v := range rawjson.Items(list) {
		if keep(v) {
			raw = append(raw, v.Raw)
		}
	}
	return raw
}

func rawElements(list gjson.Result) []string {
	return rawElementsWhere(list, func(gjson.Result) bool { return true })
}
