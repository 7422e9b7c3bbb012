package rehydrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/recall"
)

// TestResolved: the defaults are the seed's, and a negative limit is none. A10, A19
func TestResolved(t *testing.T) {
	seed := recall.Rehydration{
		MaxArtifacts: 3, MaxTokens: 4000, TotalTokens: 8000, CooldownTurns: 2,
		Sensitivities: []artifact.Sensitivity{artifact.Public, artifact.Internal},
	}
	for _, o := range []*recall.Rehydration{nil, {}, &seed} {
		if diff := cmp.Diff(seed, resolve(o)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", o, diff)
		}
	}
	none := resolve(&recall.Rehydration{MaxArtifacts: -1, MaxTokens: -5, TotalTokens: -1, CooldownTurns: -1, Sensitivities: []artifact.Sensitivity{}})
	if diff := cmp.Diff(recall.Rehydration{Sensitivities: []artifact.Sensitivity{}}, none); diff != "" {
		t.Errorf("negative limits (-want +got):\n%s", diff)
	}
}
