package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// input is the file that a command reads. load sets file, selectRun the transcript.
type input struct {
	from string // the format; empty to detect it
	run  int    // which of several conversations, counting from 1

	target
	file *transcript.File
	*transcript.Transcript
}

// addFlags adds the flags of a command that does something with the input.
func (in *input) addFlags(c *cobra.Command, does string) {
	c.Flags().StringVar(&in.from, "from", "", "the input is `FORMAT` (default: detected): "+formatNames())
	c.Flags().IntVar(&in.run, "run", 0, does+" the `N`-th conversation of a file that holds several")
}

// maxInput limits a line of a file, or a document over several lines, in bytes: twice the
// largest request that a provider takes (32 MB).
const maxInput = 64 << 20

// load reads what a target names; see target.
func (in *input) load(ctx context.Context, name string, stdin io.Reader) error {
	if err := in.find(ctx, name); err != nil || in.stored != "" {
		return err
	}
	return in.read(stdin)
}

// open reads one conversation of what a name means, and says on standard error, if there is one, what that is.
func (in *input) open(ctx context.Context, name string, s Streams) error {
	if err := in.load(ctx, name, s.In); err != nil {
		return err
	}
	if s.Err != nil {
		in.printTaken(s.Err)
	}
	return in.selectRun()
}

func (in *input) read(stdin io.Reader) (err error) {
	path := in.path
	if in.from != "" && !slices.Contains(transcript.Formats(), transcript.Format(in.from)) {
		return fmt.Errorf("%w: unknown format %q; known are %s", errUsage, in.from, formatNames())
	}
	o := &transcript.Options{Format: transcript.Format(in.from), MaxLine: maxInput}
	if err = checkNoFolder(path); err != nil {
		return err
	}
	if path == "-" || isPipe(path) {
		from := path
		if o.Name = filepath.Base(path); path == "-" {
			o.Name, from = "stdin", "standard input"
		}
		r, _ := openInput(path, stdin) // neither is opened before it is read
		if in.file, err = transcript.Read(r, o); err != nil {
			err = fmt.Errorf("%s: %w", from, err)
		}
	} else {
		if info, err := os.Stat(path); err == nil && info.Size() > muchRead {
			limitGarbage(0)
		}
		in.file, err = sessions.Open(path, o)
	}
	if errors.Is(err, transcript.ErrTooLong) {
		return fmt.Errorf("%w; the most is %d MB, twice what a provider takes at once", err, maxInput>>20)
	}
	limitGarbage(muchRead)
	return err
}

// muchRead is what a command has in memory, in bytes, when it has read much: garbage then counts more than time.
const muchRead = 32 << 20

// limitGarbage limits it if more bytes than that are in memory.
func limitGarbage(above uint64) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > above && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

func (in *input) selectRun() error {
	n := len(in.file.Transcripts)
	switch {
	case in.run == 0 && n == 1:
		in.run = 1
	case in.run == 0:
		return fmt.Errorf("%w: %s holds %d conversations; choose one with --run 1 to --run %d (`palimpsest inspect` lists them)", errUsage, in.path, n, n)
	case in.run < 0 || in.run > n:
		return fmt.Errorf("%w: --run %d: %s holds %s", errUsage, in.run, in.path, plural(n, "conversation"))
	}
	in.Transcript = &in.file.Transcripts[in.run-1]
	if in.Prompt != nil {
		in.Prompt.Messages = nil // the thread has them
	}
	return nil
}

// baseRequest is the request without its messages, for an API and a model.
func (in *input) baseRequest(api, model string) *prompt.Prompt {
	base := prompt.Prompt{Model: in.Model, System: in.System, Tools: in.Tools}
	if in.Prompt != nil {
		base = *in.Prompt
		base.Messages = nil
	}
	if model != "" {
		base.Model = model
	} else if in.api() != api {
		base.Model = ""
	}
	base.Model = cmp.Or(base.Model, defaultModels[api])
	return &base
}

// api is the API whose format the conversation has: the default for --to.
func (in *input) api() string {
	if in.stored != "" {
		return cmp.Or(apiOf(in.Thread), wire.Chat)
	}
	if api := in.file.Format.API(); api != "" || in.file.Format.Resume() == "" {
		return cmp.Or(api, wire.Chat)
	}
	if strings.HasPrefix(in.Model, "claude") {
		return wire.Anthropic
	}
	return wire.Chat
}

func (in *input) printWarnings(p *printer) {
	if in.file != nil {
		p.kinds("warning: "+shorten(in.target.name(), 60), in.warnings())
	}
}

func (in *input) warnings() []string {
	return mapSlice(in.file.Report.Warnings, transcript.Warning.String)
}

// commandArguments name the conversation for another command.
func (in *input) commandArguments() string {
	words := in.command()
	if len(in.file.Transcripts) > 1 {
		words += fmt.Sprintf(" --run %d", in.run)
	}
	return words
}

// name names the conversation in reports.
func (in *input) name() string {
	name := in.target.name()
	if len(in.file.Transcripts) > 1 {
		name += fmt.Sprintf(" (run %d of %d)", in.run, len(in.file.Transcripts))
	}
	return name
}

type inputSummary struct {
	File        string   `json:"file"`
	Format      string   `json:"format"`
	Run         int      `json:"run"`
	Thread      string   `json:"thread_id"`
	Model       string   `json:"model,omitempty"`
	Messages    int      `json:"messages"`
	Turns       int      `json:"turns"`
	ToolCalls   int      `json:"tool_calls"`
	Compactions int      `json:"own_compactions"`
	Side        int      `json:"side_chains"`
	Warnings    []string `json:"warnings,omitempty"`

	fileName string // as reports name it
}

func (in *input) summary() inputSummary {
	calls := 0
	for _, m := range hosted.Unfold(in.Thread.Messages()) {
		calls += len(m.Calls())
	}
	return inputSummary{
		File: in.name(), Format: cmp.Or(string(in.file.Format), "stored"), Run: in.run, Thread: in.Thread.ID(), Model: in.Model,
		Messages: in.Thread.Len(), Turns: in.Thread.Turns(), ToolCalls: calls,
		Compactions: len(in.Compactions), Side: len(in.Side), fileName: in.target.name(), Warnings: in.warnings(),
	}
}

func (s inputSummary) print(p *printer) {
	p.text("%s · %s · %s · %s · %s", shorten(s.File, 60), s.Format, plural(s.Messages, "message"), plural(s.Turns, "turn"), plural(s.ToolCalls, "tool call"))
	if s.Compactions > 0 {
		p.line("the agent itself compacted %s", plural(s.Compactions, "time"))
	}
	if s.Side > 0 {
		p.line("not counted: %s of sub-agents or abandoned branches", plural(s.Side, "side chain"))
	}
	p.kinds("warning: "+shorten(s.fileName, 60), s.Warnings)
}

func formatNames() string { return joinFormats(transcript.Formats()) }

// writerNames are the values of --into.
func writerNames() string { return joinFormats(transcript.Writers()) }

func joinFormats(formats []transcript.Format) string {
	return joinEach(formats, func(f transcript.Format) string { return string(f) })
}

// apiOf is the API that a log was read from, by its newest part that names one; empty if none
// does.
func apiOf(log *thread.Thread) string {
	for _, m := range slices.Backward(log.Messages()) {
		for _, p := range m.Parts {
			if api := p.From().API; api != "" {
				return api
			}
		}
	}
	return ""
}

// interruptibleReader ends a read when the context ends, so that Ctrl-C works while a
// command waits for standard input.
type interruptibleReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads, or returns the context's error. It is not safe for concurrent use.
func (i *interruptibleReader) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	var n int
	var err error
	buf, read := make([]byte, len(p)), make(chan struct{})
	go func() { // an abandoned read ends when its file is closed
		n, err = i.r.Read(buf)
		close(read)
	}()
	select {
	case <-read:
		return copy(p, buf[:n]), err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}

// openInput opens a file, or "-" for standard input. A pipe ends with the context of stdin.
func openInput(path string, stdin io.Reader) (io.ReadCloser, error) {
	switch {
	case path == "-":
		return io.NopCloser(stdin), nil
	case isPipe(path): // nobody may ever write to it, and to open it waits too
		var r io.Reader = &pipe{path: path}
		if i, ok := stdin.(*interruptibleReader); ok {
			r = &interruptibleReader{ctx: i.ctx, r: r}
		}
		return io.NopCloser(r), nil
	}
	if err := checkNoFolder(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// pipe is opened at the first read, and closed at its end.
type pipe struct {
	path string
	file *os.File
	err  error // of its end, which stays: another writer may come
}

// Read implements io.Reader.
func (p *pipe) Read(data []byte) (n int, err error) {
	if p.file == nil && p.err == nil {
		p.file, p.err = os.Open(p.path)
	}
	if p.err != nil {
		return 0, p.err
	}
	if n, p.err = p.file.Read(data); p.err != nil {
		p.file.Close()
	}
	return n, p.err
}

// checkNoFolder returns an error for the name of a folder.
func checkNoFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory; name a file in it", path)
	}
	return nil
}
