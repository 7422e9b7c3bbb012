package proxy

import "context"

// nativeMessages emulates the context management and the compaction of the
// Anthropic Messages API.
type nativeMessages struct{}

func (nativeMessages) begin(context.Context, *exchange, []byte, bool) (*emulation, error) {
	return nil, nil
}

func (nativeMessages) stripped(*exchange, []byte, bool) *emulation { return nil }
