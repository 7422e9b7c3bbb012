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
	answers
}

// codec reads and writes the requests of an API, and reads its answers.
type codec interface {
	wire.Codec
	wire.Answers
}

// answers makes one answer of several.
type answers interface {
	// readable reports whether the answer to a request comes in a form that is
	// read here.
	readable(r *http.Request, body map[string]gjson.Result) bool
	// joined makes one answer of those of several rounds, without the calls that
	// are ours.
	joined(rounds [][]byte) []byte
	// translator does the same for streams.
	translator() translator
}

// translator makes one stream of those of several rounds. It holds back the
// events that end a round until it is known whether another one follows.
type translator interface {
	// next takes an event; it returns what the client gets for it, and whether
	// it is the last of its round.
	next(e sse.Event) (out []byte, last bool)
	// whole reports whether the round has come to its end.
	whole() bool
	// again begins another round. counted says that the one before came to its
	// end, so that its usage counts.
	again(counted bool)
	// end returns what was held back, or what stands in its place.
	end(e streamEnd) []byte
}

// withdrawer takes back the end of a round. Every translator is one.
type withdrawer interface {
	// mark remembers what the client was given, withdraw goes back there: what came
	// since never reaches the client, and the round is over.
	mark()
	withdraw()
	// rest is what of the answer itself came with the events that end the round.
	rest() []byte
}

// streamEnd is how a stream ends for the client. The zero value is as it came.
type streamEnd struct {
	// dangling says that nothing is left of the calls for which the model stopped.
	dangling bool
	// failure says why the answer goes no further; empty when it is whole.
	failure string
	// wrote is the failure as the provider wrote it, as JSON on one line; empty
	// where it wrote nothing of the kind.
	wrote string
}

// streamJoiner is what the translators have in common.
type streamJoiner struct {
	usageFields usageFields
	round       int
	indexes     blockIndexes // of blocks, calls or items
	used        string       // usage of the earlier rounds
	now         string       // usage of this one
	held        []sse.Event
	stopped     bool // this round came to its end
	marked      int64
}

func (j *streamJoiner) mark()        { j.marked = j.indexes.next }
func (j *streamJoiner) withdraw()    { j.indexes.next = j.marked }
func (j *streamJoiner) rest() []byte { return nil }

func (j *streamJoiner) again(counted bool) {
	j.round++
	if counted {
		j.used = j.usage()
	}
	j.indexes.again()
	j.now, j.held, j.stopped = "", nil, false
}

func (j *streamJoiner) whole() bool { return j.stopped }

// usage is that of all rounds so far.
func (j *streamJoiner) usage() string { return j.usageFields.joined(j.used, j.now) }

func (j *streamJoiner) hold(e sse.Event) { j.held = append(j.held, e) }

// release gives what was held back, with what change makes of its data.
func (j *streamJoiner) release(change func(data string) string) (out []byte) {
	for _, e := range j.held {
		out = append(out, e.With(change(e.Data))...)
	}
	j.held = nil
	return out
}

// failed is the event that ends a stream with a failure: what the provider wrote of it, where
// that has a member, else the sentence in the API's form. It is nil where there is none.
func (how streamEnd) failed(name, member, form string) []byte {
	switch {
	case gjson.Get(how.wrote, member).Exists():
		return sse.Event{Name: name}.With(how.wrote)
	case how.failure != "":
		return sse.Event{Name: name}.With(fmt.Sprintf(form, rawjson.Quote(how.failure)))
	}
	return nil
}

// blockIndexes says under which index the client is shown what a round numbers for
// itself: as the provider does, without what is ours and behind the earlier
// rounds.
type blockIndexes struct {
	at              map[int64]int64 // -1 for what the client is not shown
	base, cut, next int64
}

// put gives a place to an index of this round.
func (p *blockIndexes) put(index int64, shown bool) {
	if p.at == nil {
		p.at = map[int64]int64{}
	}
	if !shown {
		p.at[index] = -1
		p.cut++
		return
	}
	to := p.base + index - p.cut
	p.at[index] = to
	p.next = max(p.next, to+1)
}

// of returns the place of an index; one that nobody announced keeps its own.
func (p *blockIndexes) of(index int64) (to int64, shown bool) {
	to, known := p.at[index]
	if !known {
		return index, true
	}
	return to, to >= 0 || to == index
}

// again begins another round.
func (p *blockIndexes) again() { p.at, p.base, p.cut = nil, p.next, 0 }

// joined makes one answer of those of several rounds: the elements of a list that are shown,
// of all of them, and the rest of the last.
func joined(rounds [][]byte, list, usage string, f usageFields, shown func(v gjson.Result, round int) bool) string {
	var all []string
	used := ""
	for n, body := range rounds {
		all = append(all, selected(gjson.GetBytes(body, list), func(v gjson.Result) bool { return shown(v, n) })...)
		used = f.joined(used, gjson.GetBytes(body, usage).Raw)
	}
	out := jsonedit.Set(string(rounds[len(rounds)-1]), list, rawjson.Array(all))
	if used != "" {
		out = jsonedit.Set(out, usage, used)
	}
	return out
}

// selected are the elements of a list that are kept.
func selected(list gjson.Result, keep func(gjson.Result) bool) (raw []string) {
	for v := range rawjson.Items(list) {
		if keep(v) {
			raw = append(raw, v.Raw)
		}
	}
	return raw
}

func elements(list gjson.Result) []string {
	return selected(list, func(gjson.Result) bool { return true })
}
