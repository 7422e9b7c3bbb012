package identify

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ReadContinued reads a body that continues a history which it does not hold. Of its first messages, so
// many retained ones, those that the history holds are left out. It returns the size of the whole in
// bytes, too.
func ReadContinued(codec wire.Codec, body string, before []thread.Message, retained int, canceled Canceled) (*Request, int, error) {
	p, err := Decode(codec, body, canceled)
	if err != nil {
		return nil, 0, err
	}
	news := withToolNames(before, withoutKnown(before, p.Messages, retained))
	known, size := make([]thread.ID, len(before)), len(body)
	for i := range before {
		known[i] = before[i].ID
		if f := before[i].Frame; f != nil && before[i].Index == 0 {
			size += len(f.Raw())
		}
	}
	p.Messages = append(before, news...)
	ids, err := chainIDs(known, p.Messages, canceled)
	if err != nil {
		return nil, 0, err
	}
	return &Request{Body: NewBody(body), Prompt: p, IDs: ids, Members: members(body), SystemDigest: systemDigest(p)}, size, nil
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
	first, rest := slices.Clone(messages[:min(n, len(messages))]), messages[min(n, len(messages)):]
	first = slices.DeleteFunc(first, func(m thread.Message) bool { return there[thread.ChainID("", &m)] })
	return append(first, rest...)
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
