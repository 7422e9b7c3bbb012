package adapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// tries bounds how often a history is placed anew because another call of the same
// conversation was first.
const tries = 5

// place adds what is new in a history to the log, and returns the session of it. A
// history that differs from the log, or ends before it, goes on in a fork; its name
// says where it begins, so that the next call finds it. What the log of the
// conversation holds beside it can still be searched.
func (s *Sessions[M]) place(ctx context.Context, id string, own []thread.Message) (*palimpsest.Session, error) {
	name, earlier := id, []string(nil)
	for conflicts := 0; ; {
		session := s.compactor.Session(name, earlier...)
		at, err := session.Append(ctx)
		if err != nil {
			return nil, err
		}
		log := at.Log.Messages()
		same := 0
		for same < min(len(log), len(own)) && log[same].ID == own[same].ID {
			same++
		}
		var stale *palimpsest.VersionError
		switch {
		case same == len(log):
			_, err := session.OnlyIf(palimpsest.Condition{Log: &same}).Append(ctx, own[same:]...)
			if err == nil {
				return session, nil
			}
			if conflicts++; conflicts > tries || !errors.As(err, &stale) && !errors.Is(err, store.ErrConflict) {
				return nil, err
			}
			continue
		case same < len(own):
			earlier, name = append([]string{name}, earlier...), fork(id, "f", own[same].ID)
		default:
			earlier, name = append([]string{name}, earlier...), fork(id, "e", own[same-1].ID)
		}
	}
}

// fork is the log of the histories that go on from a conversation with the message of
// that id ("f"), or end with it ("e").
func fork(id, how string, at thread.ID) string { return fmt.Sprintf("%s.%s%.12s", id, how, string(at)) }
