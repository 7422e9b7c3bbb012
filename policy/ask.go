package policy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// extractiveName names the summarizer that takes over when a model's summary could not be
// used.
const extractiveName = "extractive"

// summaryModel asks a policy's model for the summary of one plan, and collects the
// reports.
type summaryModel struct {
	situation    *history
	model        llm.Generator // nil: nobody is asked
	trust        Trust
	report       summarize.Report
	lostBytes    int                // bytes of the model's text that were left out
	maxBytes     int                // bytes that a text which is not checked may take
	otherReports []summarize.Report // of the situation's summarizer
	judged       summarize.Input    // what was judged of the user's sentences
}

// writeOrFallback has a model write something. fallback writes it where there is no model,
// where the model failed, and where nothing of its answer could be used (a
// *summarize.RejectedError); failure is the reason. The error is a failure that isFinal
// selects, any failure once ctx is done, or that of fallback.
func writeOrFallback[T any](ctx context.Context, model llm.Generator, write func() (T, error), fallback func(failure error) (T, error), isFinal func(error) bool) (out T, failure, err error) {
	if model == nil {
		out, err = fallback(nil)
		return out, nil, err
	}
	out, failure = write()
	switch {
	case failure == nil:
		return out, nil, nil
	case ctx.Err() != nil, !isRejected(failure) && isFinal != nil && isFinal(failure):
		return out, nil, failure
	}
	out, err = fallback(failure)
	return out, failure, err
}

// mustCompact reports whether the messages cannot stay as they are: somebody asked for less, or the
// provider, or they do not fit the policy's limit or the window.
func (s *Situation) mustCompact(limit int) bool {
	return s.Forced || s.PromptTokens > smallerLimit(limit, s.Limit())
}

// isRejected reports whether a model answered, but nothing of its answer could be used.
func isRejected(err error) bool {
	_, ok := errors.AsType[*summarize.RejectedError](err)
	return ok
}

// askInPieces gives the pieces of a conversation to a model, one after the other. A piece
// that is too long for its window is split by halve.
func askInPieces[T any](pieces []T, halve func(T) []T, ask func(T) error) error {
	for len(pieces) > 0 {
		err := ask(pieces[0])
		if llm.IsOverflow(err) {
			if halves := halve(pieces[0]); halves != nil {
				pieces = append(halves, pieces[1:]...)
				continue
			}
		}
		if err != nil {
			return err
		}
		pieces = pieces[1:]
	}
	return nil
}

// summarizeInHalves has a model summarize entries on top of an earlier summary. Where they
// are too long for its window it summarizes the first half and then, on top of that, the
// second.
func summarizeInHalves(entries []entry, previous string, summarize func([]entry, string) (string, error)) (string, error) {
	halve := func(e []entry) [][]entry {
		if len(e) < 2 {
			return nil
		}
		return [][]entry{e[:len(e)/2], e[len(e)/2:]}
	}
	err := askInPieces([][]entry{entries}, halve, func(e []entry) (err error) {
		text, err := summarize(e, previous)
		if err == nil {
			previous = text
		}
		return err
	})
	return previous, err
}

// minChunkBytes is the smallest transcript that is split, in bytes.
const minChunkBytes = 2_000

func splitChunk(chunk string) []string {
	if len(chunk) <= minChunkBytes {
		return nil
	}
	return chunkEntries([]string{chunk}, utf8.RuneCountInString(chunk)/2+1)
}

// chunkEntries joins entries to chunks of at most limit characters. A longer entry is cut,
// never inside a character as readers see it.
func chunkEntries(entries []string, limit int) []string {
	var chunks []string
	var b strings.Builder
	size := 0
	flush := func() {
		if size > 0 {
			chunks = append(chunks, b.String())
		}
		b.Reset()
		size = 0
	}
	for _, e := range entries {
		n := utf8.RuneCountInString(e)
		if size > 0 && size+1+n > limit {
			flush()
		}
		for n > limit {
			at := clip.Boundary(e, limit) // bytes, so never more characters
			if at == 0 {
				at = len(e)
			}
			chunks = append(chunks, e[:at])
			e = e[at:]
			n = utf8.RuneCountInString(e)
		}
		if n == 0 {
			continue
		}
		if size > 0 {
			b.WriteByte('\n')
			size++
		}
		b.WriteString(e)
		size += n
	}
	flush()
	return chunks
}

// instructionBlock is the end of a request to a model: what the user wants this summary to
// keep in mind, outside of all data; mostly empty.
func (s *Situation) instructionBlock() string {
	text := strings.TrimSpace(s.Instructions)
	if text == "" {
		return ""
	}
	return "\n\n## The " + string(cmp.Or(s.InstructionsBy, thread.User)) + " asks you to weigh this for the summary\n" + text
}

// generate has the model answer. A refusal, a tool call and an empty answer are errors
// like a failed call; all of them are *llm.APIError, where the generator keeps its
// contract. Of a text that was cut off at its limit the whole sentences count; any other
// answer that was cut off is an error.
func (a *summaryModel) generate(ctx context.Context, system prompt.System, user string, o *llm.Options) (*llm.Reply, error) {
	system.Text = strings.TrimSpace(system.Text)
	if a.situation.Attempt > 1 {
		again := *cmp.Or(o, &llm.Options{})
		again.RetryFailed = true
		o = &again
	}
	reply, err := a.situation.Answers.Ask(ctx, a.model, &prompt.Prompt{
		System:   []prompt.System{system},
		Messages: []thread.Message{thread.NewMessage(thread.User, strings.TrimSpace(user))},
	}, o)
	if err != nil {
		return nil, err
	}
	if whole := clip.Sentences(reply.Text, len(reply.Text)-1); reply.Stop == wire.StopLength && (o == nil || o.Schema == nil) && whole != "" {
		a.reportCut(reply.Text[len(whole):])
		cut := *reply
		cut.Text, cut.Stop = whole, wire.StopEnd
		if n := len(cut.Attempts); n > 0 {
			cut.Attempts = slices.Clone(cut.Attempts)
			cut.Attempts[n-1].Err = nil
		}
		reply = &cut
	}
	if err := replyError(reply); err != nil {
		if n := len(reply.Attempts); n > 0 {
			all := slices.Clone(reply.Attempts)
			all[n-1].Err = err
			return nil, &llm.AttemptsError{Attempts: all}
		}
		return nil, err
	}
	a.report = a.report.With(summarize.Replied(a.model.Model(), reply))
	return reply, nil
}

// reportCut reports the end of a text that was cut off, with the number of its sentences.
func (a *summaryModel) reportCut(end string) {
	n := 0
	for line := range strings.Lines(end) {
		if line = strings.TrimSpace(line); line != "" {
			n += 1 + strings.Count(line, ". ")
		}
	}
	n = max(n, 1)
	a.report = a.report.With(summarize.Report{By: a.model.Model(), Proposed: n, Dropped: map[string]int{"cut": n},
		Left: []summarize.Left{{Text: clip.Head(strings.TrimSpace(end), 200), Cause: "cut"}}})
}

// clipAndReport cuts a model's text to limit tokens: not every model keeps to its limit,
// and not every server enforces it.
func (a *summaryModel) clipAndReport(text string, limit int) string {
	cut := a.situation.clipText(text, limit)
	if cut != text {
		a.reportCut(text[len(cut):])
	}
	return cut
}

// clipText cuts a text to limit tokens, at the end of a line or sentence if possible.
func (s *Situation) clipText(text string, limit int) string {
	for s.Counter.Text(text) > limit && text != "" {
		most := len(text) * 9 / 10
		whole := clip.Sentences(text, most)
		if len(whole) < len(text)/2 {
			whole = text[:clip.Boundary(text, most)]
		}
		text = strings.TrimSpace(whole)
	}
	return text
}

func replyError(reply *llm.Reply) error {
	switch {
	case reply.Err() != nil:
		return reply.Err()
	case reply.Stop == wire.StopTool || len(reply.Message.Calls()) > 0:
		return &llm.APIError{Kind: llm.ErrResponse, RequestID: reply.RequestID, Message: "the model called a tool where a summary was asked for"}
	case strings.TrimSpace(reply.Text) == "" && reply.JSON == "":
		return &llm.APIError{Kind: llm.ErrResponse, RequestID: reply.RequestID, Message: "the model's answer is empty"}
	}
	return nil
}

// generateText has the model answer a text with a text.
func (a *summaryModel) generateText(ctx context.Context, system prompt.System, user string, o *llm.Options) (string, error) {
	reply, err := a.generate(ctx, system, user, o)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(reply.Text), nil
}

// fillTemplate replaces names in a template by their values, given in pairs.
func fillTemplate(template string, values ...string) string {
	return strings.NewReplacer(values...).Replace(template)
}

// inputTag finds what a reader could take for one of the tags of our requests.
var inputTag = lazyregexp.New(`(?i)<(\s*/?\s*(?:context-compaction-input|previous-summary|existing-workstream-state|new-messages|new-entries|blocks))`)

// escapeTags writes content so that it opens and closes none of these tags.
func escapeTags(content string) string { return inputTag().ReplaceAllString(content, "&lt;$1") }

// summarizeStructured has the situation's summarizer, or else code, make the structured
// summary of messages.
func (a *summaryModel) summarizeStructured(ctx context.Context, in summarize.Input) (summary.Summary, error) {
	summarizer := a.situation.Summarizer
	if summarizer == nil {
		summarizer = &summarize.Extractive{Counter: a.situation.Counter.Text}
	}
	in.Budget, in.StandingTokens = strategy.Uncorrected(in.Budget, a.situation.Correction), standingRoom(a.situation.PromptTokens)
	in.Answers, in.Instructions, in.InstructionsBy = a.situation.Answers, a.situation.Instructions, a.situation.InstructionsBy
	in.Stands, in.Changes = a.judged.Stands, a.judged.Changes
	out, err := summarizer.Summarize(ctx, in)
	if out.Report.By != "" {
		a.otherReports = append(a.otherReports, out.Report)
	}
	return out.Summary, err
}

// reportFailure adds to the error of a plan what was asked for it.
func (a *summaryModel) reportFailure(err *error) { *err = withReports(*err, a.reports("", nil)) }

// reports are those of the plan. After a failure, fallback is who wrote the summary in
// place of the model.
func (a *summaryModel) reports(fallback string, failure error) []summarize.Report {
	r := a.report
	if failure != nil {
		who := extractiveName
		if a.model != nil {
			who = cmp.Or(r.By, a.model.Model())
		}
		r.Failures = append(r.Failures, summarize.Failures(who, failure)...)
		r.By = fallback
	}
	if r.By == "" {
		return a.otherReports
	}
	return append(a.otherReports, r)
}
