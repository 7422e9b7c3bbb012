package summarize

import (
	"cmp"
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Chunked passes a long span to Inner in pieces, each with the summary of the ones before as
// its previous summary. No piece ends between a call and its results, so a step that is
// longer than a piece is a piece of its own. A piece that is too long for Inner's model
// (llm.ErrOverflow) is halved as often as possible. Safe for concurrent use.
type Chunked struct {
	Inner Summarizer
	// Characters bounds a piece; 0 means 120,000.
	Characters int
	// Size is how many characters a message takes in Inner's request; nil counts the bytes
	// of texts, arguments and results. It must be pure and safe for concurrent use.
	Size func(*thread.Message) int
}

// runningLimit bounds the summary of all pieces but the last, in tokens.
const runningLimit = 80_000

var _ Summarizer = (*Chunked)(nil)

// Summarize implements Summarizer. An error of Inner names the piece.
func (c *Chunked) Summarize(ctx context.Context, in Input) (Result, error) {
	ends, err := c.pieces(&in, cmp.Or(max(c.Characters, 0), 120_000))
	if err != nil {
		return Result{}, err
	}
	return c.inTurn(ctx, in, ends)
}

// inTurn summarises the pieces that end at ends, each on top of those before it.
func (c *Chunked) inTurn(ctx context.Context, in Input, ends []int) (Result, error) {
	var all Result
	from := 0
	for n, end := range ends {
		piece := in
		// The later pieces are no context: they do not stay in the prompt.
		piece.Messages = in.Messages[from:end]
		if n > 0 {
			previous := all.Summary
			if piece.Previous = &previous; previous.Told != nil {
				piece.Told = *previous.Told
			}
		}
		if n < len(ends)-1 {
			piece.Budget = runningLimit
		}
		out, err := c.piece(ctx, piece)
		switch {
		case err != nil && len(ends) > 1:
			return Result{}, all.Report.failed(fmt.Errorf("piece %d of %d: %w", n+1, len(ends), err))
		case err != nil:
			return Result{}, err
		}
		from, all = end, Result{Summary: out.Summary, Report: all.Report.With(out.Report)}
	}
	return all, nil
}

// piece summarises one piece, in halves if the model cannot read all of it.
func (c *Chunked) piece(ctx context.Context, in Input) (Result, error) {
	out, err := c.Inner.Summarize(ctx, in)
	if !llm.IsOverflow(err) || ctx.Err() != nil {
		return out, err
	}
	total, _ := c.sizes(&in)
	ends, cutErr := c.pieces(&in, total/2)
	if cutErr != nil || len(ends) < 2 {
		return out, err
	}
	return c.inTurn(ctx, in, ends)
}

// sizes are the sizes of the messages in a request; those that a model has told of are not in it.
func (c *Chunked) sizes(in *Input) (total int, sizes []int) {
	size := c.Size
	if size == nil {
		size = characters
	}
	known := isAmong(in.Told.Span.MessageIDs)
	sizes = make([]int, len(in.Messages))
	for i := range in.Messages {
		if m := &in.Messages[i]; !known(m.ID) {
			sizes[i] = size(m)
			total += sizes[i]
		}
	}
	return total, sizes
}

// pieces returns where pieces of at most so many characters end.
func (c *Chunked) pieces(in *Input, most int) ([]int, error) {
	messages := in.Messages
	total, sizes := c.sizes(in)
	if total <= most {
		return []int{len(messages)}, nil
	}
	t, err := thread.New("").Append(messages...)
	if err != nil {
		return nil, fmt.Errorf("cutting the span into pieces: %w", err)
	}
	points := cut.Legal(t, thread.Pair(t))
	var ends []int
	legal, held, since := 0, 0, 0 // the last legal end, the size of the piece, its size after that end
	for i := range messages {
		if points.Legal(i) {
			legal, since = i, 0
		}
		if held+sizes[i] > most && legal > 0 && (len(ends) == 0 || legal > ends[len(ends)-1]) {
			ends = append(ends, legal)
			held = since
		}
		held += sizes[i]
		since += sizes[i]
	}
	return append(ends, len(messages)), nil
}

// characters is the size of the texts of a message, in bytes.
func characters(m *thread.Message) int {
	n := len(m.Text())
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.ToolCall:
			n += len(p.Name) + len(p.Arguments)
		case thread.ToolResult:
			n += len(p.Text())
		}
	}
	return n
}
