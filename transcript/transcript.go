// Package transcript reads the session files of agents, and the request bodies that they send,
// into threads; and it writes session files. It detects the format, reads gzip and
// zstd, and reads session files line by line. A session of Codex may lie in several files, beside
// each other or in the folders of Codex: Open reads those too that its history goes on from.
//
// Nothing is lost silently: lines without a message and lines of unknown type are counted by
// type, and everything doubtful is a Warning with its line. Where the agent itself
// compacted, the thread holds the full history, and the agent's summary in it is a message
// of kind Recap.
//
// All functions are safe for concurrent use.
package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// defaultMaxLine is the default of Options.MaxLine: more than any request that a provider
// accepts.
const defaultMaxLine = 128 << 20

// Options say how to read. A nil *Options and the zero value are the defaults.
type Options struct {
	// Format is the format of the file; empty detects it.
	Format Format
	// Name names the threads if the file has no session id. The default is the file's name
	// in Open, and "transcript" in Read.
	Name string
	// MaxLine limits a line, or a document over several lines, in bytes; 0 stands for 128
	// MiB. A compressed file may unpack to eight times as much.
	MaxLine int
}

// File is the content of a file.
type File struct {
	Format Format
	// Transcripts are the conversations, in file order; never empty.
	Transcripts []Transcript
	Report      Report
}

// Transcript is one conversation.
type Transcript struct {
	// Name is the session id, or else the name of the file and the number of the
	// conversation in it. It is also the id of Thread.
	Name string
	// Title is the short name that the agent or its user gave, or empty.
	Title string
	// Model is the last model that spoke, by the provider's name, or empty.
	Model string
	// Provider serves that model, by the agent's name for it, or empty.
	Provider string
	// Dir is the directory that the agent worked in, or empty.
	Dir    string
	System []prompt.System
	Tools  []prompt.Tool
	// Thread holds the whole history, with chained ids.
	Thread *thread.Thread
	// Prompt is set for request bodies: the decoded request, which the codec encodes to the
	// same bytes.
	Prompt *prompt.Prompt
	// Side are other conversations of the session: those of sub-agents, and branches that
	// the user left by going back.
	Side []Transcript
	// Compactions are the places where the agent itself compacted, in order.
	Compactions []Compaction
}

// Compaction is a place where the agent itself compacted its context.
type Compaction struct {
	// At is the position in Thread of the first message after it, which is the recap if
	// there is one.
	At int
	// Summary is the recap's id; empty when none was written.
	Summary thread.ID
	// TokensBefore is the size before it, as the agent counted; 0 if unknown.
	TokensBefore int
	// TokensAfter is the size that it left: what the agent says of it, or of its first request after it; 0 if
	// unknown.
	TokensAfter int
	// Trigger is the agent's word for the cause: "auto", "manual", "clear"
	// (the user started afresh within the session); empty when unknown.
	Trigger string
}

// Report counts what did not become messages.
type Report struct {
	// Lines counts the lines read, blank ones included.
	Lines int
	// Skipped counts entries that are known to hold no message, by type.
	Skipped map[string]int
	// Unknown counts entries that were not recognised, by type.
	Unknown map[string]int
	// Warnings are the doubtful places, in file order; but if the end of the file is missing,
	// that is the first.
	Warnings []Warning

	blocks map[string]int // those that nobody knows and that are in messages, by type
	cutOff *Warning       // nil if the file is whole
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

func (r *Report) skip(what string)    { count(&r.Skipped, what) }
func (r *Report) unknown(what string) { count(&r.Unknown, what) }

func count(counts *map[string]int, what string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[strings.Clone(what)]++ // it may be a part of a line, which is not kept
}

func (r *Report) warn(line int, format string, args ...any) {
	r.Warnings = append(r.Warnings, Warning{Line: line, Text: fmt.Sprintf(format, args...)})
}

// expects tells of a message that has its content, a text or blocks, at none of the paths: it is not empty, but
// cannot be read.
func (r *Report) expects(what string, m gjson.Result, paths ...string) {
	for _, path := range paths {
		if v := m.Get(path); v.Type == gjson.String || v.Type == gjson.JSON {
			return
		}
	}
	r.unknown(what + " without " + paths[0])
}

// warnUnknown says what was not recognised: nobody knows whether the model saw it.
func (r *Report) warnUnknown() {
	if len(r.Unknown) > 0 {
		r.warn(0, "not known and left out: %s", countsText(r.Unknown))
	}
	if len(r.blocks) > 0 {
		r.warn(0, "blocks of types that are not known stay as they are: %s", countsText(r.blocks))
	}
}

// countsText names what was counted, as far as maxUnknown.
func countsText(counts map[string]int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if len(all) == maxUnknown {
			all = append(all, fmt.Sprintf("and %d more types", len(counts)-maxUnknown))
			break
		}
		all = append(all, fmt.Sprintf("%s (%d)", clip.Line(what, 60), counts[what]))
	}
	return strings.Join(all, ", ")
}

// maxUnknown limits how many types of unknown entries are named.
const maxUnknown = 20

// Open reads the file at path. Errors name the path.
func Open(path string, o *Options) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	defer f.Close()
	named := *cmp.Or(o, &Options{})
	named.Name = cmp.Or(named.Name, baseName(path))
	named.MaxLine = cmp.Or(max(0, named.MaxLine), defaultMaxLine)
	if err := checkUnpacked(f, named.MaxLine); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, err := read(f, &named, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

func baseName(path string) string {
	name := filepath.Base(path)
	for _, ext := range []string{".gz", ".zst", ".jsonl", ".ndjson", ".json", ".traj"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// Read reads one file. It returns an error that wraps ErrEmpty, ErrBinary,
// ErrTooLong or ErrUnknownFormat, a *SyntaxError, or the error of r.
func Read(r io.Reader, o *Options) (*File, error) { return read(r, o, "") }

// read is Read of a file; an empty path stands for none.
func read(r io.Reader, o *Options, path string) (*File, error) {
	opt := *cmp.Or(o, &Options{})
	opt.MaxLine = cmp.Or(max(0, opt.MaxLine), defaultMaxLine)
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
	job := &importJob{row: file.Format.row(), in: in, name: opt.Name, path: path, report: &file.Report}
	if job.read == nil {
		return nil, fmt.Errorf("format %q: %w; known are %s", opt.Format, ErrUnknownFormat, joinFormats(Formats()))
	}
	if file.Transcripts, err = job.read(job); err != nil {
		return nil, err
	}
	file.Report.Lines = in.number
	file.Report.warnUnknown()
	slices.SortStableFunc(file.Report.Warnings, func(a, b Warning) int { return a.Line - b.Line })
	if file.Report.cutOff != nil {
		file.Report.Warnings = slices.Insert(file.Report.Warnings, 0, *file.Report.cutOff)
	}
	if len(file.Transcripts) == 0 {
		return nil, fmt.Errorf("read as %s, the file holds no conversation: %w", file.Format, ErrEmpty)
	}
	return file, nil
}

// importJob is what a format's reader works on.
type importJob struct {
	row
	in     *input
	name   string
	path   string // of the file; empty if that is not known
	report *Report
}

func (j *importJob) lines(read func(v gjson.Result, number int)) error {
	return j.in.each(func(line []byte, number int) { read(gjson.ParseBytes(line), number) })
}

var (
	// ErrEmpty is wrapped by errors about a file without any conversation.
	ErrEmpty = errors.New("no messages")
	// ErrBinary is wrapped by errors about a file that is not text.
	ErrBinary = errors.New("not a text file")
	// ErrTooLong is wrapped by errors about a line over Options.MaxLine.
	ErrTooLong = errors.New("line too long")
	// ErrTooDeep is wrapped by errors about a document nested over 1,000 levels. A line of several that
	// nests so deep is left out, with a warning.
	ErrTooDeep error = rawjson.ErrDepth
	// ErrUnknownFormat is wrapped by errors about a file in none of the known formats. The
	// message lists them.
	ErrUnknownFormat = errors.New("unknown transcript format")
)

// SyntaxError is a place in a file that cannot be read.
type SyntaxError struct {
	// Line counts from 1.
	Line int
	// Path is a path in the line's JSON, such as history[3]; empty for the whole line.
	Path string
	Err  error
}

// Error names the line, and the path where there is one.
func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d: %s: %v", e.Line, e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }
