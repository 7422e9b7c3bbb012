package artifacttest

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// over is an artifact.Store over a backend that is proved.
type over struct {
	*artifact.Store
	tested
}

// puts keeps content, of the thread "t" unless the metadata says otherwise.
func (s over) puts(m artifact.Metadata, content string) (id string) {
	s.Helper()
	m.ThreadID = cmp.Or(m.ThreadID, "t")
	id, err := s.Store.Put(s.Context(), m, content)
	s.need(err)
	return id
}

// fails is the error of reading an artifact.
func (s over) fails(who artifact.Requester, id string) error {
	_, _, err := s.Store.Get(s.Context(), who, id)
	return err
}

// reads wants an artifact to be readable.
func (s over) reads(who artifact.Requester, id, want string) artifact.Metadata {
	s.Helper()
	m, got, err := s.Store.Get(s.Context(), who, id)
	if err != nil || got != want {
		s.Errorf("%s: %d bytes, %v, want %d", id, len(got), err, len(want))
	}
	return m
}

// store: the guarantees of artifact.Store over this backend. A20
func store(b tested) {
	s, ctx := over{artifact.NewStore(b.Backend, &artifact.Options{MaxBytes: 100}), b}, b.Context()
	first := s.puts(artifact.Metadata{MessageIDs: []thread.ID{"m1"}, TTLSeconds: 3600, Sensitivity: artifact.Restricted}, "same")
	second := s.puts(artifact.Metadata{MessageIDs: []thread.ID{"m2", "m1"}, Sensitivity: artifact.Public}, "same")
	other := s.puts(artifact.Metadata{ThreadID: "t2"}, "same")
	if first != artifact.IDOf("t", "same") || second != first || other == first {
		b.Errorf("ids %s, %s and, of another thread, %s", first, second, other)
	}
	m, err := s.Metadata(ctx, artifact.Requester{}, first)
	if err != nil || !reflect.DeepEqual(m.MessageIDs, []thread.ID{"m1", "m2"}) || m.Sensitivity != artifact.Restricted || m.TTLSeconds != 0 || m.Bytes != 4 {
		b.Errorf("putting the same twice gave %+v, %v", m, err)
	}
	mine := artifact.Requester{TenantID: "me"}
	_, foreign := s.Metadata(ctx, mine, first)
	b.is(artifact.ErrNotFound, foreign, s.fails(mine, first), s.fails(artifact.Requester{}, "../../etc/passwd"), s.fails(artifact.Requester{}, "art_0000000000000000"))
	_, large := s.Store.Put(ctx, artifact.Metadata{ThreadID: "t"}, strings.Repeat("x", 101))
	b.is(artifact.ErrTooLarge, large)
	for _, bad := range []artifact.Metadata{{}, {ThreadID: "t", TTLSeconds: -1}, {ThreadID: "t", Sensitivity: "secret"}} {
		if _, err := s.Store.Put(ctx, bad, "x"); err == nil {
			b.Errorf("%+v was kept", bad)
		}
	}
	damaged := metadata("", "t", "right")
	damaged.TTLSeconds, damaged.EncryptionKeyID = 0, ""
	b.put(damaged, "wrong")
	b.is(artifact.ErrCorrupt, s.fails(artifact.Requester{}, damaged.ID))
	s.puts(artifact.Metadata{}, "right")
	s.reads(artifact.Requester{}, damaged.ID, "right")
}

// expiry: enforced on read and swept. A20
func expiry(b tested) {
	ctx, now, anyone := b.Context(), began, artifact.Requester{}
	s := over{artifact.NewStore(b.Backend, &artifact.Options{Now: func() time.Time { return now }}), b}
	short := s.puts(artifact.Metadata{TTLSeconds: 10}, "short")
	forever := s.puts(artifact.Metadata{}, "for ever")
	for range 2 { // the second time it was put again, and lives longer
		now = now.Add(9 * time.Second)
		s.reads(anyone, short, "short")
		s.puts(artifact.Metadata{TTLSeconds: 10}, "short")
	}
	now = now.Add(10 * time.Second)
	_, err := s.Metadata(ctx, anyone, short)
	b.is(artifact.ErrExpired, err, s.fails(anyone, short))
	for m, err := range s.Store.List(ctx, anyone, artifact.Filter{}) {
		if err != nil || m.ID != forever {
			b.Errorf("listed %s, %v", m.ID, err)
		}
	}
	if n, err := s.Sweep(ctx, anyone, nil); n != 1 || err != nil {
		b.Errorf("swept %d, %v", n, err)
	}
	b.is(artifact.ErrNotFound, s.fails(anyone, short))
	s.reads(anyone, forever, "for ever")
}
