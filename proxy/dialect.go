package proxy

import (
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// dialect is what an exchange must know of an API: its requests and its answers.
type dialect struct {
	wire.Codec
	answers
}

// answers reads the answers of an API, and makes one of several.
type answers interface {
	// readable reports whether the answer to a request comes in a form that is
	// read here.
	readable(r *http.Request, body map[string]gjson.Result) bool
	// said reads what the model said in an answer that came in one piece.
	said(body []byte) (thread.Message, error)
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
	next(e sent) (out []byte, last bool)
	// said is what the model said in this round; it is false before the round
	// has come to its end.
	said() (thread.Message, bool)
	// again begins another round. counted says that the one before came to its
	// end, so that its usage counts.
	again(counted bool)
	// end returns what was held back, or what stands in its place.
	end(e ending) []byte
}

// ending is how a stream ends for the client. The zero value is as it came.
type ending struct {
	// dangling says that nothing is left of the calls for which the model stopped.
	dangling bool
	// failure says why the answer goes no further; empty when it is whole.
	failure string
	// wrote is the failure as the provider wrote it, as JSON on one line; empty
	// where it wrote nothing of the kind.
	wrote string
}

// errAnswer says that an answer is not one message of the model's.
var errAnswer = errors.New("the answer is not one message")

// places says under which index the client is shown what a round numbers for
// itself: as the provider does, without what is ours and behind the earlier
// rounds.
type places struct {
	at              map[int64]int64 // -1 for what the client is not shown
	base, cut, next int64
}

// put gives a place to an index of this round.
func (p *places) put(index int64, shown bool) {
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
func (p *places) of(index int64) (to int64, shown bool) {
	to, known := p.at[index]
	if !known {
		return index, true
	}
	return to, to >= 0 || to == index
}

// again begins another round.
func (p *places) again() { p.at, p.base, p.cut = nil, p.next, 0 }
