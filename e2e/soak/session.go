//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// talk is a recorded conversation: what came before each of the assistant's messages,
// and that message.
type talk struct {
	name  string
	turns []turn
}

type turn struct {
	before []neutral.Message
	answer neutral.Message
}

// longest bounds a conversation, in turns, so that many come to their end.
const longest = 60

// readTalks reads all conversations of a folder. A file that is none is passed over.
func readTalks(dir string) (list []talk, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		file, err := transcript.Open(path, nil)
		if err != nil {
			return nil
		}
		for _, t := range file.Transcripts {
			k := talk{name: e.Name()}
			var before []neutral.Message
			for _, m := range t.Thread.Messages() {
				n := neutral.MessageOf(&m)
				n.ID, n.Turn = "", 0
				if m.Role == thread.System {
					continue
				}
				if m.Role != thread.Assistant {
					before = append(before, n)
				} else if len(before) > 0 || len(k.turns) > 0 {
					k.turns = append(k.turns, turn{before, n})
					before = nil
				}
				if len(k.turns) == longest {
					break
				}
			}
			if len(k.turns) > 3 {
				list = append(list, k)
			}
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("there is no conversation in %q", dir)
	}
	return list, err
}

// searchEvery is in which of its turns a session searches what was removed.
const searchEvery = 10

// session is an agent's: where it is in its conversation, and which daemons it may ask.
type session struct {
	id      string
	talk    talk
	daemons []*daemon
	created bool
	version int // of the log, as it was acknowledged
	done    int // turns
	halfway bool
	refused string // why the daemon does not take the rest
}

func newSession(n int, k talk, daemons []*daemon) *session {
	return &session{id: fmt.Sprintf("session-%06d", n), talk: k, daemons: daemons}
}

func (s *session) finished() bool { return s.done == len(s.talk.turns) || s.refused != "" }

// step does one turn: it asks for a prompt and brings the answer. What fails on the way
// is tried again, at any of the daemons, until ctx ends.
func (s *session) step(ctx context.Context, random *rand.Rand) (tries int, err error) {
	try := func(do func(c *api.Client) error) error {
		for {
			tries++
			err := do(s.daemons[random.IntN(len(s.daemons))].client)
			var p *api.Problem
			switch {
			case err == nil:
				return nil
			case errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusTooManyRequests && !api.IsKind(err, api.Conflict):
				return err
			}
			select {
			case <-time.After(time.Duration(20+random.IntN(80)) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if !s.created {
		err := try(func(c *api.Client) error {
			_, err := c.CreateThread(ctx, api.NewThread{ID: s.id})
			if api.IsKind(err, api.Exists) {
				return nil // made by a call that got no answer
			}
			return err
		})
		if err != nil {
			return tries, err
		}
		s.created = true
	}
	t := s.talk.turns[s.done]
	if !s.halfway {
		err = try(func(c *api.Client) error {
			p, err := c.Prepare(ctx, s.id, s.version, api.Step{Base: &neutral.Prompt{Model: "gpt-soak"}, Messages: t.before, Window: 24_000, Output: 1000})
			if err == nil {
				s.version = p.Version
			}
			return err
		})
		if err != nil {
			return tries, s.stopped(ctx, err)
		}
		s.halfway = true
	}
	err = try(func(c *api.Client) error {
		a, err := c.Finish(ctx, s.id, s.version, api.Answer{Messages: []neutral.Message{t.answer}})
		if err == nil {
			s.version = a.Version
		}
		return err
	})
	if err != nil {
		return tries, s.stopped(ctx, err)
	}
	s.halfway = false
	s.done++
	if s.done%searchEvery == 0 {
		// What it finds, and whether there is anything to search, depends on the talk.
		_, _ = s.daemons[0].client.Recall(ctx, s.id, "error in the file that was read first", nil)
	}
	return tries, nil
}

// stopped notes why a session does not go on: what it said last may be too large for
// the window, for one.
func (s *session) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		s.refused = err.Error()
	}
	return err
}

// check reads the log back: all that was acknowledged is there, once and in order. What
// was not acknowledged may be there behind it.
func (s *session) check(ctx context.Context) (problems []string) {
	if !s.created {
		return nil
	}
	var want []neutral.Message
	for n, t := range s.talk.turns[:min(len(s.talk.turns), s.done+1)] {
		want = append(want, t.before...)
		if n <= s.done {
			want = append(want, t.answer)
		}
	}
	var got []neutral.Message
	for cursor := ""; ; {
		var page *api.Log
		var err error
		for range 200 { // a daemon may be down
			if page, err = s.daemons[len(got)%len(s.daemons)].client.Log(ctx, s.id, cursor, 0); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			return []string{s.id + ": " + err.Error()}
		}
		got = append(got, page.Items...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(got) < s.version {
		problems = append(problems, fmt.Sprintf("%s: LOST: %d messages, %d were acknowledged", s.id, len(got), s.version))
	}
	if len(got) > len(want) {
		problems = append(problems, fmt.Sprintf("%s: TWICE: %d messages, %d were sent", s.id, len(got), len(want)))
	}
	for i := range min(len(got), len(want)) {
		if said(got[i]) != said(want[i]) {
			return append(problems, fmt.Sprintf("%s: message %d is %.200s, want %.200s", s.id, i, said(got[i]), said(want[i])))
		}
	}
	return problems
}

// said is what a message says, without what the daemon adds.
func said(m neutral.Message) string {
	m.ID, m.Turn, m.Kind, m.Time = "", 0, "", time.Time{}
	data, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// proxying are ordinary agents behind the proxies: what they ask reaches the provider,
// however slow it is, and its answer comes back.
type proxying struct {
	talks   []talk
	daemons []*daemon
	client  *http.Client

	asked, answered, again atomic.Int64
}

func (p *proxying) run(ctx context.Context, pause time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		k, d := p.talks[n%len(p.talks)], p.daemons[n%len(p.daemons)]
		var messages []string
		for i, t := range k.turns {
			for _, m := range append(t.before[:len(t.before):len(t.before)], t.answer) {
				var text strings.Builder
				for _, part := range m.Parts {
					text.WriteString(part.Text)
					for _, inside := range part.Content {
						text.WriteString(inside.Text)
					}
				}
				role := "user"
				if m.Role == "assistant" {
					role = "assistant"
				}
				messages = append(messages, `{"role":"`+role+`","content":`+rawjson.Quote(text.String()+" ")+`}`)
			}
			if ctx.Err() != nil {
				return
			}
			if i%8 != 7 {
				continue
			}
			body := `{"model":"gpt-soak","user":"` + fmt.Sprint(n) + `","messages":[` + strings.Join(messages, ",") + `,{"role":"user","content":"Go on."}]}`
			p.asked.Add(1)
			for ctx.Err() == nil {
				res, err := p.client.Post(d.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
				if err == nil {
					answer, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err == nil && res.StatusCode == http.StatusOK && bytes.Contains(answer, []byte("the answer of the provider")) {
						p.answered.Add(1)
						break
					}
				}
				p.again.Add(1)
				time.Sleep(pause)
			}
		}
	}
}

// startUpstream is a provider that is slow now and then, and fails now and then.
func startUpstream(seed uint64) (*httptest.Server, error) {
	random := rand.New(rand.NewPCG(seed, 1<<41))
	var mu sync.Mutex
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client is gone
		}
		mu.Lock()
		n := random.IntN(100)
		mu.Unlock()
		switch {
		case n < 3:
			panic(http.ErrAbortHandler)
		case n < 6:
			w.Header().Set("Retry-After", "1")
			http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
			return
		case n < 15:
			select {
			case <-time.After(time.Duration(n) * 500 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, wiretest.Body(wire.Chat, &wiretest.ModelAnswer{Serial: "1", Model: "gpt-soak", Text: "the answer of the provider", Stop: wire.StopEnd}))
	})), nil
}
