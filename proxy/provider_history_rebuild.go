package proxy

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// loggedHistory is the part of a conversation that a request does not send: a compaction of
// ours stands for it, or the provider holds it.
type loggedHistory struct {
	// Log is the id of the log, At how many of its messages belong to the history, and Last
	// the id of the last of them. Without a log the request holds everything.
	Log  string    `json:"log,omitempty"`
	At   int       `json:"at,omitempty"`
	Last thread.ID `json:"last,omitempty"`
}

// rebuiltRequest is a request with its history put back in, from the log and from stored answers.
type rebuiltRequest struct {
	loggedHistory
	// body is the request, with what follows the logged history as its input.
	body string
	// mustReplaceBody says that the provider could not answer the client's own bytes, so that
	// the rendering goes out in any case.
	mustReplaceBody bool
	// retained is how many messages at the beginning of the body stood before the
	// compaction. Those that the log holds are not new.
	retained int
	// fallback are the items of a request that needs no log; nil if the client's own will do.
	fallback []string
}

var errHistoryChanged = errors.New("the log no longer holds the history that the request continues")

func (cv *conversations) loadHistory(ctx context.Context, h loggedHistory) ([]thread.Message, error) {
	if h.Log == "" {
		return nil, nil
	}
	log, err := cv.log.Load(ctx, h.Log)
	if err != nil {
		return nil, err
	}
	if h.At < 1 || h.At > log.Len() || log.At(h.At-1).ID != h.Last {
		return nil, errHistoryChanged
	}
	return log.Messages()[:h.At:h.At], nil
}

// parseRebuilt is parseRequest for a rebuilt request.
func (ps *parser) parseRebuilt(ctx context.Context, x *received, from *rebuiltRequest) (*parsedRequest, error) {
	p, err := identify.Decode(x.endpoint.dialect, from.body, ctx.Err)
	if err != nil {
		return nil, err
	}
	before, err := ps.conversations.loadHistory(ctx, from.loggedHistory)
	if err != nil {
		return nil, err
	}
	news := withToolNames(before, withoutKnown(before, p.Messages, from.retained))
	known, size := make([]thread.ID, len(before)), len(from.body)
	for i := range before {
		known[i] = before[i].ID
		if f := before[i].Frame; f != nil && before[i].Index == 0 {
			size += len(f.Raw())
		}
	}
	p.Messages = append(before, news...)
	ids, err := identify.ChainIDs(known, p.Messages, ctx.Err)
	if err != nil {
		return nil, err
	}
	r := ps.identifyRequest(ctx, x, identify.Assembled(from.body, p, ids), size)
	if from.Log != "" {
		r.base = from.Log
	}
	if !from.mustReplaceBody && identify.RefersToItems(r.Request) {
		r.kind = identify.ServerSide
	}
	return r, nil
}

// withoutKnown drops those of the first n messages that the history holds.
func withoutKnown(before, messages []thread.Message, n int) []thread.Message {
	if n == 0 || len(before) == 0 {
		return messages
	}
	there := map[thread.ID]bool{}
	for i := range before {
		if m := &before[i]; m.Role == thread.User || m.Role == thread.System {
			there[thread.ChainID("", m)] = true
		}
	}
	var news []thread.Message
	for i := range messages {
		m := &messages[i]
		if i < n && there[thread.ChainID("", m)] {
			continue
		}
		news = append(news, *m)
	}
	return news
}

// withToolNames gives results the tool names of their calls in the history.
func withToolNames(before, news []thread.Message) []thread.Message {
	var names map[string]string
	for i := range news {
		r, ok := news[i].Result()
		if !ok || r.Tool != "" {
			continue
		}
		if names == nil {
			names = map[string]string{}
			for j := range before {
				for _, c := range before[j].Calls() {
					names[c.ID] = c.Name
				}
			}
		}
		if r.Tool = names[r.CallID]; r.Tool != "" {
			news[i].Parts = []thread.Part{r}
		}
	}
	return news
}

// instructions are the system and developer messages at the beginning of a request's input.
func instructions(p *prompt.Prompt) []json.RawMessage {
	var list []json.RawMessage
	for _, s := range p.System {
		if s.Role != "instructions" && s.API == wire.Responses {
			list = append(list, json.RawMessage(s.Raw))
		}
	}
	return list
}

// logPosition is where a request ends in its log, and the messages up to there.
func (cv *conversations) logPosition(ctx context.Context, id string, r *parsedRequest) (loggedHistory, []thread.Message, error) {
	log, err := cv.log.Load(ctx, id)
	if err != nil {
		return loggedHistory{}, nil, err
	}
	last := r.IDs[len(r.IDs)-1]
	at, found := log.Index(last)
	if !found {
		if at = log.Len() - 1; at < 0 {
			return loggedHistory{}, nil, errHistoryChanged
		}
		last = log.At(at).ID
	}
	return loggedHistory{id, at + 1, last}, log.Messages()[:at+1], nil
}
