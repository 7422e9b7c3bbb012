package artifact_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// With a keyring, content is encrypted before the backend sees it.
func ExampleOptions_sealer() {
	ctx := context.Background()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		panic(err)
	}
	ring := keyring.New(masters, &keyringtest.Memory{}, nil)
	s := artifact.NewStore(new(artifact.Memory), &artifact.Options{Keyring: ring})

	id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", TenantID: "acme", Sensitivity: artifact.Restricted}, "the door code is 4711")
	fmt.Println(id, err)
	m, content, err := s.Get(ctx, artifact.Requester{TenantID: "acme"}, id)
	fmt.Println(content, m.EncryptionKeyID, err)

	_, _, err = s.Get(ctx, artifact.Requester{TenantID: "acme", Clearance: artifact.Internal}, id)
	fmt.Println(errors.Is(err, artifact.ErrForbidden))
	_, _, err = s.Get(ctx, artifact.Requester{TenantID: "other"}, id)
	fmt.Println(errors.Is(err, artifact.ErrNotFound))

	err = ring.Erase(ctx, "acme")
	_, again := s.Put(ctx, artifact.Metadata{ThreadID: "t", TenantID: "acme"}, "more")
	fmt.Println(err, errors.Is(again, keyring.ErrErased))
	// Output:
	// art_f4a285ba917b5ac9 <nil>
	// the door code is 4711 dk-1 <nil>
	// true
	// true
	// <nil> true
}
