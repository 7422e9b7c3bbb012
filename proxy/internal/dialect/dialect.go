// Package dialect holds what the proxy knows of each API beyond its codec: where in an answer
// the calls, the usage and the reason to stop are, and how the rounds of a lookup become one
// answer or one stream for the client.
//
// dialect.go has what the APIs share; anthropic.go, chat.go, responses.go and gemini.go say for
// each what is its own.
package dialect

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Vendor is whose API a request is for.
type Vendor int

const (
	OpenAIVendor Vendor = iota
	AnthropicVendor
	GeminiVendor
	Vendors // how many there are
)

// Dialect is what an exchange must know of an API: how to read its requests and answers, and
// where in an answer things are.
type Dialect struct {
	codec
	Vendor Vendor
	// contextTools says that calls of the tools to see and steer the context are answered here too.
	contextTools bool
	// CanReadAnswer reports whether the answer to a request comes in a form that is read here.
	CanReadAnswer func(r *http.Request, body map[string]gjson.Result) bool

	// list is the path of an answer's blocks, items, parts or calls, and call says which of them
	// call a tool, and which tool.
	list string
	call func(element gjson.Result) (tool string, isCall bool)
	// signature is the member of a call that holds the signature which only the first call of a
	// batch has, and noSignature what the API takes in its place; empty for APIs without.
	signature, noSignature string
	// usage is the path of the usage, in an answer and in the events of a stream.
	usage       string
	usageFields usageFields
	// stop is the path of the reason for which an answer ends, and eventStop that in a stream. If
	// nothing is left of the calls for which it ends, toolStop becomes endStop. Empty for APIs
	// that do not name calls as the reason.
	stop, eventStop, toolStop, endStop string

	// finishJoined makes the joined answer of several rounds whole; nil if it is.
	finishJoined  func(d *Dialect, joined string, rounds [][]byte) string
	newTranslator func(streamJoiner) Translator // a Rewinder too
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

// Translator returns a new translator, as the two that it is.
func (d *Dialect) Translator() (Translator, Rewinder) {
	t := d.newTranslator(streamJoiner{dialect: d})
	return t, t.(Rewinder)
}

// isShown reports whether the client is shown an element of the list: not the calls of our tools,
// and of the thinking only that of the first round, which alone is bound to what the client
// knows.
func (d *Dialect) isShown(element gjson.Result, round int) bool {
	if tool, _ := d.call(element); d.IsOurTool(tool) {
		return false
	}
	kind := element.Get("type").Str
	return round == 0 || kind != "thinking" && kind != "redacted_thinking"
}

// batch is what was seen of the calls of a round.
type batch struct {
	isShown       bool // one of them, to the client
	lostSignature bool // of a call that the client is not shown
}

// shownElements are the elements of a list that the client is shown; changed says that they are not
// all as they came. The first shown call may stand behind a hidden one that has the signature of the
// batch: the provider would refuse it without any. The signature itself is not moved, because it is
// made for the part that it came with.
func (d *Dialect) shownElements(list gjson.Result, round int, b *batch) (shown []string, changed bool) {
	for v := range rawjson.Items(list) {
		_, isCall := d.call(v)
		signed := isCall && d.signature != "" && v.Get(d.signature).Str != ""
		if !d.isShown(v, round) {
			b.lostSignature, changed = b.lostSignature || signed, true
			continue
		}
		raw := v.Raw
		if isCall {
			if b.lostSignature && !b.isShown && !signed {
				raw, changed = jsonedit.Set(raw, d.signature, rawjson.Quote(d.noSignature)), true
			}
			b.isShown = true
		}
		shown = append(shown, raw)
	}
	return shown, changed
}

// WithContextTools is the dialect where the model is offered the tools to see and steer its context.
func (d *Dialect) WithContextTools() *Dialect {
	out := *d
	out.contextTools = true
	return &out
}

// IsOurTool reports whether calls of a tool are answered here.
func (d *Dialect) IsOurTool(name string) bool {
	return name == recall.ReadArtifactTool || name == recall.RecallTool || d.contextTools && notes.IsTool(name)
}

// JoinAnswers makes one answer of those of several rounds: the shown elements of all, and the
// rest of the last.
func (d *Dialect) JoinAnswers(rounds [][]byte) []byte {
	var shown []string
	used, calls := "", false
	for n, body := range rounds {
		var b batch
		elements, _ := d.shownElements(gjson.GetBytes(body, d.list), n, &b)
		shown, calls = append(shown, elements...), calls || b.isShown
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
		out = d.finishJoined(d, out, rounds)
	}
	return []byte(out)
}

// withoutToolStop corrects the reason at a path, for an answer that is left without calls.
func (d *Dialect) withoutToolStop(doc, path string) string {
	if path == "" || gjson.Get(doc, path).Str != d.toolStop {
		return doc
	}
	return jsonedit.Set(doc, path, rawjson.Quote(d.endStop))
}

func (d *Dialect) WithoutCalls(body []byte) []byte {
	kept := rawjson.RawItems(gjson.GetBytes(body, d.list), func(v gjson.Result) bool { _, isCall := d.call(v); return !isCall })
	return []byte(jsonedit.Set(string(body), d.list, rawjson.Array(kept)))
}

// Translator makes one stream of those of several rounds. It holds back the events that end a
// round until it is known whether another one follows.
type Translator interface {
	// TakeEvent takes an event; it returns what the client gets for it, and whether it is the
	// last of its round.
	TakeEvent(e sse.Event) (out []byte, last bool)
	// IsComplete reports whether the round has come to its end.
	IsComplete() bool
	// StartRound begins another round. counted says that the one before came to its end, so
	// that its usage counts.
	StartRound(counted bool)
	// End returns what was held back, or what stands in its place.
	End(e StreamEnd) []byte
}

// Rewinder is the part of a translator that takes back the end of a round.
type Rewinder interface {
	// SavePosition remembers what the client was given. Rewind goes back there: the client
	// never gets what came since, and the round is over.
	SavePosition()
	Rewind()
	// HeldContent is the part of the answer itself that came with the events that end the
	// round.
	HeldContent() []byte
}

// StreamEnd is how a stream ends for the client. The zero value is as it came.
type StreamEnd struct {
	// CallsRemoved says that nothing is left of the calls for which the model stopped.
	CallsRemoved bool
	// Failure says why the answer breaks off; empty if it is whole.
	Failure string
	// ProviderError is the failure as the provider wrote it, as JSON on one line; empty if it
	// wrote none.
	ProviderError string
}

// streamJoiner is what the translators have in common.
type streamJoiner struct {
	dialect      *Dialect
	round        int
	indexes      blockIndexes // of blocks, calls or items
	earlierUsage string       // of the earlier rounds
	roundUsage   string       // of this one
	heldEvents   []sse.Event
	complete     bool // this round came to its end
	savedNext    int64
}

func (j *streamJoiner) SavePosition() { j.savedNext = j.indexes.next }

func (j *streamJoiner) Rewind() { j.indexes.next = j.savedNext }

func (j *streamJoiner) HeldContent() []byte { return nil }

func (j *streamJoiner) StartRound(counted bool) {
	j.round++
	if counted {
		j.earlierUsage = j.totalUsage()
	}
	j.indexes.startRound()
	j.roundUsage, j.heldEvents, j.complete = "", nil, false
}

func (j *streamJoiner) IsComplete() bool { return j.complete }

func (j *streamJoiner) totalUsage() string {
	return j.dialect.usageFields.joinUsage(j.earlierUsage, j.roundUsage)
}

func (j *streamJoiner) holdBack(e sse.Event) { j.heldEvents = append(j.heldEvents, e) }

func (j *streamJoiner) End(end StreamEnd) (out []byte) {
	d := j.dialect
	if v := gjson.Parse(end.ProviderError); v.Get("error").Exists() && (d.errorEvent == "" || v.Get("type").Str == d.errorEvent) {
		return sse.Event{Name: d.errorEvent}.WithData(end.ProviderError)
	}
	if end.Failure != "" {
		return sse.Event{Name: d.errorEvent}.WithData(fmt.Sprintf(d.errorForm, rawjson.Quote(end.Failure)))
	}
	for _, e := range j.heldEvents {
		data := e.Data
		if j.round > 0 && gjson.Get(data, d.usage).IsObject() {
			data = jsonedit.Set(data, d.usage, j.totalUsage())
		}
		if end.CallsRemoved {
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

// withShownIndex puts the client's index in place of that of this round, at a path of a document. One
// that was never assigned stays.
func (p *blockIndexes) withShownIndex(doc, path string) (out string, shown bool) {
	index := gjson.Get(doc, path).Int()
	to, known := p.shownAs[index]
	if !known || to == index {
		return doc, true
	}
	return jsonedit.Set(doc, path, strconv.FormatInt(to, 10)), to >= 0
}

func (p *blockIndexes) startRound() { p.shownAs, p.base, p.hidden = nil, p.next, 0 }

// usageFields says which members of a usage count what the model wrote. Clients take the input of
// an answer for the size of their context, so a sum over rounds would mislead them: only what
// was written is summed, with money and the calls of tools that the provider runs.
type usageFields struct {
	// written are summed over the rounds; everything else is that of the last round.
	written []string
	// output are those of written that count tokens of the answer, and total is their sum with
	// the prompt's; empty if the API has none.
	output []string
	total  string
	// rounds says that the API lists the rounds of a request (usage.iterations). The clients of
	// the others may refuse a member that they do not know.
	rounds bool
}

// joinUsage joins the usage of the earlier rounds, itself joined, with that of one more. If one of
// them is missing it is the other.
func (f usageFields) joinUsage(used, now string) string {
	earlier, last := gjson.Parse(used), gjson.Parse(now)
	switch {
	case !earlier.IsObject():
		return now
	case !last.IsObject():
		return used
	}
	out := addCounts(earlier, last, countLevels, func(name string) bool { return slices.Contains(f.written, name) })
	wrote := int64(0)
	for _, name := range f.output {
		wrote += earlier.Get(name).Int()
	}
	if all := last.Get(f.total); f.total != "" && all.Type == gjson.Number {
		out = jsonedit.Set(out, f.total, strconv.FormatInt(all.Int()+wrote, 10))
	}
	if f.rounds {
		out = jsonedit.Set(out, "iterations", rawjson.Array(slices.Concat(iterations(used), iterations(now))))
	}
	return out
}

// iterations are those that a usage lists, or the usage itself as one.
func iterations(usage string) []string {
	v := gjson.Parse(usage)
	list := rawjson.RawItems(v.Get("iterations"), nil)
	if list != nil || !v.IsObject() {
		return list
	}
	return []string{native.MessageIteration(usage)}
}

// countLevels bounds how deep counts may be nested. Providers nest them twice.
const countLevels = 8

// addCounts adds the summed counts of an earlier object to a later one, objects within them
// included. Anything else is the later one's, if it has it.
func addCounts(earlier, later gjson.Result, levels int, summed func(name string) bool) string {
	out := later.Raw
	for name, before := range rawjson.Members(earlier) {
		if before.Type == gjson.Null || !summed(name) {
			continue
		}
		path := gjson.Escape(name)
		switch now := later.Get(path); {
		case !now.Exists() || now.Type == gjson.Null:
			out = jsonedit.Set(out, path, before.Raw)
		case before.Type == gjson.Number && now.Type == gjson.Number:
			out = jsonedit.Set(out, path, addNumbers(before, now))
		case levels > 1 && before.IsObject() && now.IsObject():
			out = jsonedit.Set(out, path, addCounts(before, now, levels-1, func(string) bool { return true }))
		}
	}
	return out
}

func addNumbers(a, b gjson.Result) string {
	if strings.ContainsAny(a.Raw+b.Raw, ".eE") {
		return strconv.FormatFloat(a.Num+b.Num, 'f', -1, 64)
	}
	return strconv.FormatInt(a.Int()+b.Int(), 10)
}
