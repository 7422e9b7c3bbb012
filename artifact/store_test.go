package artifact_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// leaky is a backend that forgets to ask whose a record is.
type leaky struct{ *artifact.Memory }

func (l leaky) Get(ctx context.Context, _, id string) (artifact.Metadata, []byte, error) {
	return l.Memory.Get(ctx, "theirs", id)
}

func (l leaky) List(ctx context.Context, f artifact.Filter) iter.Seq2[artifact.Metadata, error] {
	f.TenantID = "theirs"
	return l.Memory.List(ctx, f)
}

// TestTenants: even over a backend that mixes tenants up, none sees another's. A20
func TestTenants(t *testing.T) {
	s := artifact.NewStore(leaky{new(artifact.Memory)}, nil)
	theirs, mine := artifact.Requester{TenantID: "theirs"}, artifact.Requester{TenantID: "mine"}
	id, err := s.Put(t.Context(), artifact.Metadata{ThreadID: "t", TenantID: "theirs"}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, content, err := s.Get(t.Context(), theirs, id); err != nil || content != "secret" {
		t.Errorf("their own: %q, %v", content, err)
	}
	for _, who := range []artifact.Requester{mine, {}} {
		if _, content, err := s.Get(t.Context(), who, id); !errors.Is(err, artifact.ErrNotFound) || content != "" {
			t.Errorf("%+v got %q, %v", who, content, err)
		}
		if m, err := s.Metadata(t.Context(), who, id); !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("%+v got %+v, %v", who, m, err)
		}
		for m, err := range s.List(t.Context(), who, artifact.Filter{TenantID: "theirs"}) {
			t.Errorf("%+v lists %+v, %v", who, m, err)
		}
		if n, err := s.Sweep(t.Context(), who, nil); n != 0 || err != nil {
			t.Errorf("%+v swept %d, %v", who, n, err)
		}
	}
}

func ids(all ...thread.ID) []thread.ID { return all }

func TestIsID(t *testing.T) {
	if id := artifact.IDOf("t", "x"); !artifact.IsID(id) {
		t.Errorf("%s is none", id)
	}
	for _, s := range []string{"", "art_", "art_0", "art_0123456789abcde", "art_0123456789abcdef0", "art_0123456789ABCDEF", "art_../../../passwd", "xart_0123456789abcdef", "art_" + strings.Repeat("\x00", 16)} {
		if artifact.IsID(s) {
			t.Errorf("%q is one", s)
		}
	}
}
