package proxy

import (
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// vendor is whose API a request is for.
type vendor int

const (
	openaiVendor vendor = iota
	anthropicVendor
	geminiVendor
	vendors // how many there are
)

// dialect is what an exchange must know of an API: how to read its requests and answers, and
// where in an answer things are.
type dialect struct {
	codec
	vendor vendor
	// canReadAnswer reports whether the answer to a request comes in a form that is read here.
	canReadAnswer func(r *http.Request, body map[string]gjson.Result) bool

	// list is the path of an answer's blocks, items, parts or calls, and call says which of them
	// call a tool, and which tool.
	list string
	call func(element gjson.Result) (tool string, isCall bool)
	// usage is the path of the usage, in an answer and in the events of a stream.
	usage       string
	usageFields usageFields
	// stop is the path of the reason for which an answer ends, and eventStop that in a stream. If
	// nothing is left of the calls for which it ends, toolStop becomes endStop. Empty for APIs
	// that do not name calls as the reason.
	stop, eventStop, toolStop, endStop string

	// finishJoined makes the joined answer of several rounds whole; nil if it is.
	finishJoined  func(joined string, rounds [][]byte) string
	newTranslator func(streamJoiner) translator
	// errorEvent is the name and the type of the event that ends a stream with an error, and
	// errorForm its data, with %s for the message. Empty if events have no names, or are made
	// otherwise.
	errorEvent, errorForm string
}

// codec reads and writes the requests of an API, and reads its answers.
type codec interface {
	wire.Codec
	wire.Answers
}

func (d *dialect) translator() translator { return d.newTranslator(streamJoiner{dialect: d}) }

// isShown reports whether the client is shown an element of the list: not the calls of our tools,
// and of the thinking only that of the first round, which alone is bound to what the client
// knows.
func (d *dialect) isShown(element gjson.Result, round int) bool {
	if tool, _ := d.call(element); isOurTool(tool) {
		return false
	}
	kind := element.Get("type").Str
	return round == 0 || kind != "thinking" && kind != "redacted_thinking"
}

// isOurTool reports whether calls of a tool are answered here.
func isOurTool(name string) bool { return name == rehydrate.ReadArtifact || name == rehydrate.Recall }

// joinAnswers makes one answer of those of several rounds: the shown elements of all, and the
// rest of the last.
func (d *dialect) joinAnswers(rounds [][]byte) []byte {
	var shown []string
	used, calls := "", false
	for n, body := range rounds {
		for v := range rawjson.Items(gjson.GetBytes(body, d.list)) {
			if d.isShown(v, n) {
				_, isCall := d.call(v)
				shown, calls = append(shown, v.Raw), calls || isCall
			}
		}
		used = d.usageFields.joinUsage(used, gjson.GetBytes(body, d.usage).Raw)
	}
	out := jsonedit.Set(string(rounds[len(rounds)-1]), d.list, rawjson.Array(shown))
	if used != "" {
		out = jsonedit.Set(out, d.usage, used)
	}
	if !calls {
		out = d.withoutToolStop(out, d.stop)
	}
	if d.finishJoined != nil {
		out = d.finishJoined(out, rounds)
	}
	return []byte(out)
}

// withoutToolStop corrects the reason at a path, for an answer that is left without calls.
func (d *dialect) withoutToolStop(doc, path string) string {
	if path == "" || gjson.Get(doc, path).Str != d.toolStop {
		return doc
	}
	return jsonedit.Set(doc, path, rawjson.Quote(d.endStop))
}

func (d *dialect) withoutCalls(body []byte) []byte {
	kept := rawjson.RawItems(gjson.GetBytes(body, d.list), func(v gjson.Result) bool { _, isCall := d.call(v); return !isCall })
	return []byte(jsonedit.Set(string(body), d.list, rawjson.Array(kept)))
}

// translator makes one stream of those of several rounds. It holds back the events that end a
// round until it is known whether another one follows.
type translator interface {
	// takeEvent takes an event; it returns what the client gets for it, and whether it is the
	// last of its round.
	takeEvent(e sse.Event) (out []byte, last bool)
	// isComplete reports whether the round has come to its end.
	isComplete() bool
	// startRound begins another round. counted says that the one before came to its end, so
	// that its usage counts.
	startRound(counted bool)
	// end returns what was held back, or what stands in its place.
	end(e streamEnd) []byte
}

// streamRewinder takes back the end of a round. Every translator is one.
type streamRewinder interface {
	// savePosition remembers what the client was given. rewind goes back there: the client
	// never gets what came since, and the round is over.
	savePosition()
	rewind()
	// heldContent is the part of the answer itself that came with the events that end the
	// round.
	heldContent() []byte
}

// streamEnd is how a stream ends for the client. The zero value is as it came.
type streamEnd struct {
	// callsRemoved says that nothing is left of the calls for which the model stopped.
	callsRemoved bool
	// failure says why the answer breaks off; empty if it is whole.
	failure string
	// providerError is the failure as the provider wrote it, as JSON on one line; empty if it
	// wrote none.
	providerError string
}

// streamJoiner is what the translators have in common.
type streamJoiner struct {
	dialect      *dialect
	round        int
	indexes      blockIndexes // of blocks, calls or items
	earlierUsage string       // of the earlier rounds
	roundUsage   string       // of this one
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

func (j *streamJoiner) totalUsage() string {
	return j.dialect.usageFields.joinUsage(j.earlierUsage, j.roundUsage)
}

func (j *streamJoiner) holdBack(e sse.Event) { j.heldEvents = append(j.heldEvents, e) }

func (j *streamJoiner) end(end streamEnd) (out []byte) {
	d := j.dialect
	if v := gjson.Parse(end.providerError); v.Get("error").Exists() && (d.errorEvent == "" || v.Get("type").Str == d.errorEvent) {
		return sse.Event{Name: d.errorEvent}.WithData(end.providerError)
	}
	if end.failure != "" {
		return sse.Event{Name: d.errorEvent}.WithData(fmt.Sprintf(d.errorForm, rawjson.Quote(end.failure)))
	}
	for _, e := range j.heldEvents {
		data := e.Data
		if j.round > 0 && gjson.Get(data, d.usage).IsObject() {
			data = jsonedit.Set(data, d.usage, j.totalUsage())
		}
		if end.callsRemoved {
			data = d.withoutToolStop(data, d.eventStop)
		}
		out = append(out, e.WithData(data)...)
	}
	j.heldEvents = nil
	return out
}

// blockIndexes maps the indexes of a round to those that the client is shown: behind the earlier
// rounds, and without what is ours.
type blockIndexes struct {
	shownAs            map[int64]int64 // -1 for what the client is not shown
	base, hidden, next int64
}

// assign gives an index of this round the client's next one, if it is shown.
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

// shownIndex is the client's index for one of this round. One that was never assigned stays.
func (p *blockIndexes) shownIndex(index int64) (to int64, shown bool) {
	to, known := p.shownAs[index]
	if !known {
		return index, true
	}
	return to, to >= 0 || to == index
}

func (p *blockIndexes) startRound() { p.shownAs, p.base, p.hidden = nil, p.next, 0 }
