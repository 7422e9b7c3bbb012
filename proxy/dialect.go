package proxy

import (
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/rehydrate"
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
	// again begins another round.
	again()
	// end returns what was held back, or what stands in its place.
	end(e ending) []byte
}

// ending is how a stream ends for the client. The zero value is as it came.
type ending struct {
	// dangling says that nothing is left of the calls for which the model stopped.
	dangling bool
	// failure says why the answer goes no further; empty when it is whole.
	failure string
}

// ours reports whether a tool of that name is answered here.
func ours(name string) bool { return name == rehydrate.ReadArtifact || name == rehydrate.Recall }

// errAnswer says that an answer is not one message of the model's.
var errAnswer = errors.New("the answer is not one message")
