package proxy

import "context"

// nativeResponses emulates the compaction of the OpenAI Responses API.
type nativeResponses struct{}

func (nativeResponses) begin(context.Context, *exchange, []byte, bool) (*emulation, error) {
	return nil, nil
}

func (nativeResponses) stripped(*exchange, []byte, bool) *emulation { return nil }
