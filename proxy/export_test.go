package proxy

import (
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// Waits gives the options a clock of their own: wait is told of every wait
// between two tries of a round, and takes its place.
func (o *Options) Waits(wait func(ctx context.Context, d time.Duration) error) {
	o.retry.Sleep = wait
	o.retry.Jitter = func(longest time.Duration) time.Duration { return longest }
}

// Waiting reports whether the options wait by the real clock.
func (o *Options) Waiting() bool { return o.retry.Sleep == nil }

// JoinedUsage is what a client of an API is told of two rounds.
func JoinedUsage(api, first, second string) string {
	d := map[string]*dialect{wire.Anthropic: anthropicAPI, wire.Chat: chatAPI, wire.Responses: responsesAPI, wire.Gemini: geminiAPI}[api]
	return d.usageFields.joinUsage(first, second)
}
