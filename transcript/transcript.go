// Package transcript reads the session files that real agents leave behind, and
// the request bodies that they send, into the log. The format is detected, the
// file may be gzip, and session files are read a line at a time.
//
// Nothing is lost silently: lines that carry no message are counted by type,
// lines of unknown types too, and everything doubtful is a Warning with its
// line. What stands in the file after a compaction of the agent's own follows
// what it replaced: the thread holds the full original history, and the
// agent's summary in it is a message of kind Recap.
//
// All functions are safe for concurrent use.
package transcript

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// defaultMaxLine is the greatest length of a line, in bytes, unless Options
// says otherwise: above any request that a provider accepts.
const defaultMaxLine = 128 << 20

// Options say how to read. A nil *Options and the zero value are the defaults.
type Options struct {
	// Format is what the file holds; empty to find out.
	Format Format
	// Name names the threads when the file itself gives no session id. Open
	// takes the file's name.
	Name string
	// MaxLine is the greatest length of a line in bytes, and of a document that
	// is not written by lines; 0 stands for 128 MiB. A compressed file may come to
	// eight times as much.
	MaxLine int
}

// File is what a file held.
type File struct {
	Format Format
	// Transcripts are the conversations, in file order; never empty.
	Transcripts []Transcript
	Report      Report
}

// Transcript is one conversation.
type Transcript struct {
	// Name is the session id, or made from the name of the file and the
	// number of the conversation in it. It is the thread's id too.
	Name string
	// Title is the short name that the agent or its user gave, or empty.
	Title string
	// Model is the model that spoke last, as the provider names it, or empty.
	Model string
	// Provider is who serves that model, as the agent names it, or empty.
	Provider string
	// Dir is the directory that the agent worked in, or empty.
	Dir    string
	System []prompt.System
	Tools  []prompt.Tool
	// Thread holds the whole history, ids chained.
	Thread *thread.Thread
	// Prompt is set for request bodies: the decoded request, from which the
	// codec gives back the same bytes.
	Prompt *prompt.Prompt
	// Side are conversations beside the main one: those of sub-agents, and
	// branches that were left when the user went back.
	Side []Transcript
	// Compactions are the places where the agent itself compacted, in order.
	Compactions []Compaction
}

// Compaction is a place where the agent lost sight of what stood before.
type Compaction struct {
	// At is the position in Thread of the first message after it: the recap,
	// where there is one.
	At int
	// Summary is the recap's id; empty when none was written.
	Summary thread.ID
	// TokensBefore is the size before it as the agent counted; 0 when unknown.
	TokensBefore int
	// Trigger is the agent's word for the cause: "auto", "manual", "clear"
	// (the user started afresh within the session); empty when unknown.
	Trigger string
}

// Report says what of a file did not become messages.
type Report struct {
	// Lines counts the lines read, blank ones included.
	Lines int
	// Skipped counts, by type, what is known to carry no message.
	Skipped map[string]int
	// Unknown counts, by type, what was not recognised.
	Unknown map[string]int
	// Warnings are doubtful places, in file order.
	Warnings []Warning
}

// Warning is something doubtful that did not stop the reading.
type Warning struct {
	// Line counts from 1; 0 stands for the whole file.
	Line int
	Text string
}

// String gives the warning as people read it.
func (w Warning) String() string {
	if w.Line == 0 {
		return w.Text
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Text)
}

func (r *Report) skip(what string) {
	if r.Skipped == nil {
		r.Skipped = map[string]int{}
	}
	r.Skipped[what]++
}

func (r *Report) unknown(what string) {
	if r.Unknown == nil {
		r.Unknown = map[string]int{}
	}
	r.Unknown[what]++
}

func (r *Report) warn(line int, format string, args ...any) {
	r.Warnings = append(r.Warnings, Warning{Line: line, Text: fmt.Sprintf(format, args...)})
}

// Open reads the file at path. Errors name the path.
func Open(path string, o *Options) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	defer f.Close()
	var named Options
	if o != nil {
		named = *o
	}
	if named.Name == "" {
		named.Name = baseName(path)
	}
	file, err := Read(f, &named)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// baseName is the file's name without the endings that only say how it is kept.
func baseName(path string) string {
	name := filepath.Base(path)
	for _, ext := range []string{".gz", ".jsonl", ".ndjson", ".json", ".traj"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// Read reads one file. It returns an error that wraps ErrEmpty, ErrBinary,
// ErrTooLong or ErrUnknownFormat, a *SyntaxError, or the error of r.
func Read(r io.Reader, o *Options) (*File, error) {
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.MaxLine <= 0 {
		opt.MaxLine = defaultMaxLine
	}
	opt.Name = cmp.Or(opt.Name, "transcript")
	file := &File{}
	in, err := newInput(r, opt.MaxLine, &file.Report)
	if err != nil {
		return nil, err
	}
	file.Format = opt.Format
	if file.Format == "" {
		if file.Format, err = detect(in); err != nil {
			return nil, err
		}
	}
	at := slices.Index(Formats(), file.Format)
	if at < 0 {
		return nil, fmt.Errorf("format %q: %w; known are %s", opt.Format, ErrUnknownFormat, joinFormats(Formats()))
	}
	job := &importJob{in: in, name: opt.Name, report: &file.Report, format: file.Format}
	if file.Transcripts, err = formats[at].read(job); err != nil {
		return nil, err
	}
	file.Report.Lines = in.number
	slices.SortStableFunc(file.Report.Warnings, func(a, b Warning) int { return a.Line - b.Line })
	if len(file.Transcripts) == 0 {
		return nil, fmt.Errorf("read as %s, the file holds no conversation: %w", file.Format, ErrEmpty)
	}
	return file, nil
}

// importJob is what a format's reader works on.
type importJob struct {
	in     *input
	name   string
	format Format
	report *Report
}

// lines calls read with every line, and returns what ended the file early.
func (j *importJob) lines(read func(v gjson.Result, number int)) error {
	for {
		line, number, err := j.in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		read(gjson.ParseBytes(line), number)
	}
}
