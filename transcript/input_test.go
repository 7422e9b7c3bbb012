package transcript_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	lineUser  = `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Hello"}}` + "\n"
	lineReply = `{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"role":"assistant","id":"m1","content":[{"type":"text","text":"Hello to you"}]}}` + "\n"
)

const cutDocument = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Where is the queue that lost `

var deep = `{"type":"user","uuid":"u2","message":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_001) + "\n"

func TestBadInput(t *testing.T) {
	damaged := zipped(t, []byte(strings.Repeat(lineUser+lineReply, 2000)))
	copy(damaged[len(damaged)/2:], strings.Repeat("\xff", 40))
	wrongSum := zipped(t, []byte(lineUser+lineReply))
	wrongSum[len(wrongSum)-8]++
	for _, test := range []struct {
		name, in string
		opt      *transcript.Options
		want     error
		line     int    // of a SyntaxError; -1 for any
		says     string // what a person must find in the message
	}{
		{"empty", "", nil, transcript.ErrEmpty, 0, "empty"},
		{"blank", " \n\n\t\n", nil, transcript.ErrEmpty, 0, "blank"},
		{"empty gzip", string(zipped(t, nil)), nil, transcript.ErrEmpty, 0, "empty"},
		{"no conversation", `{"sessionId":"s","projectHash":"h","messages":[]}`, nil, transcript.ErrEmpty, 0, "gemini-cli"},
		{"zip", "PK\x03\x04rest", nil, transcript.ErrBinary, 0, "zip archive"},
		{"binary", "ab\x00\x01\x02", nil, transcript.ErrBinary, 0, "NUL"},
		{"UTF-16", "\xff\xfe{\x00}\x00", nil, transcript.ErrBinary, 0, "UTF-16"},
		{"UTF-16 without a mark", "{\x00\"\x00a\x00\"\x00", nil, transcript.ErrBinary, 0, "UTF-16"},
		{"UTF-16, the other order", "\x00{\x00\"\x00a\x00\"", nil, transcript.ErrBinary, 0, "UTF-16"},
		{"NUL", "\x00", nil, transcript.ErrBinary, 0, "NUL"},
		{"gzip header cut off", "\x1f\x8b\x08", nil, transcript.ErrEmpty, 0, "the compressed data is cut off at its beginning"},
		{"gzip cut off before its first byte", string(zipped(t, []byte(lineUser))[:12]), nil, transcript.ErrEmpty, 0, "the compressed data is cut off at its beginning"},
		{"gzip of a document cut off", string(zipped(t, []byte(cutDocument))[:60]), nil, nil, 1, "the compressed data is cut off in this line, inside of a JSON document; nothing of it could be read"},
		{"document of one line cut off", cutDocument, nil, nil, 1, "the file is cut off in this line, inside of a JSON document"},
		{"gzip broken", string(damaged), nil, nil, -1, ""},
		{"gzip with a wrong sum", string(wrongSum), nil, nil, 3, "compressed data is broken"},
		{"short gzip broken", string(damaged[:10]) + "\xff\xff\xff\xff", nil, transcript.ErrBinary, 0, "compressed data is broken"},
		{"gzip of too much", string(zipped(t, []byte(strings.Repeat(lineUser, 20)))), &transcript.Options{MaxLine: len(lineUser)}, nil, 9, "holds too much"},
		{"gzip of too many blanks", string(zipped(t, bytes.Repeat([]byte("\n"), 1e6))), &transcript.Options{MaxLine: 10_000}, nil, 80_001, "holds too much"},
		{"prose", "Dear reader,\nthis is no log.\n", nil, transcript.ErrUnknownFormat, 0, "Dear reader"},
		{"other JSON", `{"planets":9,"moons":[]}`, nil, transcript.ErrUnknownFormat, 0, "planets"},
		{"other lines", "{\"a\":1}\n{\"b\":2}\n", nil, transcript.ErrUnknownFormat, 0, "claude-code"},
		{"messages without content", `{"id":"x","messages":[{"role":"user","text":"Hi."},{"role":"assistant","text":"Hello."}]}`, nil, transcript.ErrUnknownFormat, 0, "an object with id, messages"},
		{"a number", "7\n8\n", nil, transcript.ErrUnknownFormat, 0, "the value 7"},
		{"no such format", lineUser, &transcript.Options{Format: "morse"}, transcript.ErrUnknownFormat, 0, "morse"},
		{"broken document", "[\n {\"role\":\"user\",\"content\":\"Hi\"},\n {\"role\" \"user\"}\n]\n", nil, nil, 3, "not valid JSON"},
		{"document cut off", "{\"messages\":[\n{\"role\":\"user\",\n", nil, nil, 2, "the file is cut off in this line, inside of a JSON document; nothing of it could be read: unexpected end"},
		{"line too long", lineUser + lineReply, &transcript.Options{MaxLine: len(lineUser)}, transcript.ErrTooLong, 2, "over"},
		{"document too long", "[\n" + strings.Repeat(" {},\n", 100), &transcript.Options{MaxLine: 100}, transcript.ErrTooLong, 1, "over"},
		{"too deep at once", deep, nil, transcript.ErrTooDeep, 1, "levels"},
		{"not a body", `{"body":{"model":"m","messages":[7]}}`, &transcript.Options{Format: "openai-chat"}, nil, 1, "body"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := transcript.Read(strings.NewReader(test.in), test.opt)
			if err == nil {
				t.Fatalf("read as %s with %v", f.Format, f.Report.Warnings)
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%v does not wrap %v", err, test.want)
			}
			var syntax *transcript.SyntaxError
			if errors.As(err, &syntax) != (test.line != 0) || syntax != nil && syntax.Line != test.line && test.line > 0 {
				t.Errorf("%v: want line %d", err, test.line)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v does not say %q", err, test.says)
			}
		})
	}
}

func TestDoubtfulInput(t *testing.T) {
	session := []byte(lineUser + lineReply)
	long := []byte(lineUser)
	for n := range 2000 {
		long = fmt.Appendf(long, `{"type":"user","uuid":"n%d","parentUuid":"u1","sessionId":"s","message":{"role":"user","content":"Number %d"}}`+"\n", n, n*n*7919)
	}
	half := zipped(t, long)
	half = half[:len(half)/2]
	for _, test := range []struct {
		name     string
		in       []byte
		messages int // at least
		says     string
	}{
		{"last line cut off", session[:len(session)-9], 1, "line 2: the file is cut off in this line: it is missing; the line before was read"},
		{"last line cut off, more blank ones", append(session[:len(session)-9:len(session)-9], "\n\n"...), 1, "line 2: the file is cut off in this line"},
		{"last line broken", append(session[:len(session):len(session)], "{\"a\" 1}\n"...), 2, "line 3: the last line is not valid JSON and was not read; the 2 lines before were read"},
		{"gzip cut off", half, 1, ": the compressed data is cut off in this line: it and what follows are missing; the "},
		{"gzip cut off after a line", cutAfter(zipped(t, session)), 2, "line 2: the compressed data is cut off after this line: what follows, if anything, is missing; all lines up to here were read"},
		{"gzip cut off in a doubtful file", cutAfter(zipped(t, append(session[:len(session):len(session)], lineReply...))), 2, "line 3: the compressed data is cut off after this line"},
		{"more after gzip", append(zipped(t, session), "something that is not packed"...), 2, "not gzip"},
		{"a line nests too deep", []byte(lineUser + deep + lineReply), 2, "line 2: the JSON nests too deep: over 1000 levels at byte 5032, in message.a"},
		{"the first lines nest too deep", []byte(deep + deep + lineUser + lineReply), 2, "line 2: the JSON nests too deep"},
		{"not UTF-8", bytes.Replace(session, []byte("to you"), []byte("to \xff\xc3you"), 1), 2, "line 2: bytes that are not UTF-8"},
		{"orphan", append(session[:len(session):len(session)],
			`{"type":"user","uuid":"u3","parentUuid":"a1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"lost","content":"x"}]}}`...),
			3, "the result lost answers no call"},
		{"same line twice", append(session[:len(session):len(session)], lineReply...), 2, "line 3: repeats line 2"},
		{"same id twice", append(session[:len(session):len(session)], strings.Replace(lineReply, "to you", "again", 1)...), 2, "line 3: has the uuid of line 2"},
		{"parent missing", append(session[:len(session):len(session)],
			`{"type":"user","uuid":"u3","parentUuid":"gone","message":{"role":"user","content":"Go on"}}`...),
			3, "line 3: its parent gone is not in the file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := transcript.Read(bytes.NewReader(test.in), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := f.Transcripts[0].Thread.Len() + branches(f); n < test.messages {
				t.Errorf("%d messages, want %d", n, test.messages)
			}
			if !strings.Contains(warnings(f), test.says) {
				t.Errorf("warnings %q do not say %q", warnings(f), test.says)
			}
			if first := f.Report.Warnings[0].Text; strings.Contains(test.says, "cut off") && !strings.Contains(first, "cut off") {
				t.Errorf("the first warning is %q", first)
			}
			for _, m := range f.Transcripts[0].Thread.All() {
				if !strings.Contains(m.Text(), "\ufffd") && test.name == "not UTF-8" && m.Role == thread.Assistant {
					t.Errorf("%q: the bytes were not replaced", m.Text())
				}
			}
		})
	}
}

// cutAfter cuts the end of compressed data off, but nothing of its content.
func cutAfter(packed []byte) []byte { return packed[:len(packed)-4] }

func branches(f *transcript.File) (n int) {
	for _, s := range f.Transcripts[0].Side {
		n += s.Thread.Len()
	}
	return n
}

// TestReaderFails proves that the error of the reader comes through, and is not
// taken for the end of the file.
func TestReaderFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, cut := range []int{0, 10, len(lineUser), len(lineUser) + 5} {
		r := io.MultiReader(strings.NewReader((lineUser + lineReply)[:cut]), iotest.ErrReader(broken))
		if f, err := transcript.Read(r, nil); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v, %v", cut, f, err)
		}
	}
	if _, err := transcript.Open(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v, want a missing file", err)
	}
}

// TestPackedTooMuch: a small file that unpacks to too much is refused before what it holds takes memory.
func TestPackedTooMuch(t *testing.T) {
	const most = 1 << 20
	line := strings.Replace(lineUser, "Hello", strings.Repeat("Hello ", 1000), 1)
	path := filepath.Join(t.TempDir(), "bomb.jsonl.gz")
	if err := os.WriteFile(path, zipped(t, []byte(strings.Repeat(line, 10*most/len(line)))), 0o644); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := transcript.Open(path, &transcript.Options{MaxLine: most})
	runtime.ReadMemStats(&after)
	var syntax *transcript.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 8*most/len(line)+1 || !strings.Contains(err.Error(), "holds too much") {
		t.Errorf("err = %v", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > most {
		t.Errorf("it took %d bytes", taken)
	}
}

// ids lists the ids of everything that was read.
func ids(f *transcript.File) []string {
	var all []string
	var list func(transcript.Transcript)
	list = func(t transcript.Transcript) {
		all = append(all, t.Name)
		for _, m := range t.Thread.All() {
			all = append(all, string(m.ID))
		}
		for _, s := range t.Side {
			list(s)
		}
	}
	for _, t := range f.Transcripts {
		list(t)
	}
	return all
}

// TestSameAgain proves that a file reads alike plain and packed, at once and in
// drops, with and without a byte order mark or Windows line ends, and that the
// ids are the same each time.
func TestSameAgain(t *testing.T) {
	for _, path := range samples(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read := func(r io.Reader) string {
			f, err := transcript.Read(r, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return strings.Join(ids(f), "\n") + layout(f)
		}
		want := read(bytes.NewReader(data))
		for name, r := range map[string]io.Reader{
			"twice":   bytes.NewReader(data),
			"packed":  bytes.NewReader(zipped(t, data)),
			"drops":   iotest.OneByteReader(bytes.NewReader(data)),
			"mark":    io.MultiReader(strings.NewReader("\xef\xbb\xbf"), bytes.NewReader(data)),
			"Windows": bytes.NewReader(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))),
		} {
			if d := cmp.Diff(want, read(r)); d != "" {
				t.Errorf("%s read %s differs:\n%s", path, name, d)
			}
		}
	}
}

// TestEveryPrefix proves that a session that is cut off anywhere reads up to
// the cut, and that more of the file never changes what was read of a line.
func TestEveryPrefix(t *testing.T) {
	for _, path := range []string{"testdata/pi-old.jsonl", "testdata/openai-chat-runs.jsonl", "testdata/codex-old.jsonl"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := transcript.Read(bytes.NewReader(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		property.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(bytes.IndexByte(data, '\n')+1, len(data)).Draw(t, "cut")
			f, err := transcript.Read(bytes.NewReader(data[:n]), nil)
			if errors.Is(err, transcript.ErrEmpty) {
				return
			}
			if err != nil {
				t.Fatalf("cut at %d: %v", n, err)
			}
			full := map[string]bool{}
			for _, id := range ids(whole) {
				full[id] = true
			}
			for _, id := range ids(f)[1:] {
				if !full[id] && !strings.Contains(id, "transcript") {
					t.Fatalf("cut at %d: the message %s is not in the whole file", n, id)
				}
			}
		})
	}
}

// TestAnyLines proves that a session with lines lost or out of order still
// reads: every line that is left is in the conversation, beside it, counted or
// warned about.
func TestAnyLines(t *testing.T) {
	for _, path := range []string{"testdata/claude-code.jsonl", "testdata/claude-code-joined.jsonl", "testdata/codex.jsonl", "testdata/pi.jsonl", "testdata/kimi-code.jsonl", "testdata/gemini-cli-lines.jsonl"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n"))
		lines[len(lines)-1] = append(bytes.Clone(lines[len(lines)-1]), '\n')
		format := transcript.Format("")
		for _, f := range transcript.Formats() {
			if strings.HasPrefix(filepath.Base(path), string(f)) {
				format = f
			}
		}
		property.Check(t, func(t *rapid.T) {
			var in []byte
			said := 0
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(lines)-1), 1, len(lines), rapid.ID[int]).Draw(t, "lines") {
				in = append(in, lines[i]...)
				if format == "claude-code" && bytes.Contains(lines[i], []byte(`"text":"`)) && bytes.Contains(lines[i], []byte(`"assistant"`)) {
					said++
				}
			}
			f, err := transcript.Read(bytes.NewReader(in), &transcript.Options{Format: format})
			if errors.Is(err, transcript.ErrEmpty) && said == 0 {
				return
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, in)
			}
			for _, m := range everything(f.Transcripts[0]) {
				if m.Role == thread.Assistant && m.Text() != "" {
					said--
				}
			}
			if format == "claude-code" && said != 0 {
				t.Fatalf("%s: %d texts of the assistant are lost\n%s", path, said, in)
			}
		})
	}
}

// everything lists the messages of a conversation and of those beside it.
func everything(t transcript.Transcript) []thread.Message {
	all := append([]thread.Message(nil), t.Thread.Messages()...)
	for _, s := range t.Side {
		all = append(all, everything(s)...)
	}
	return all
}

func FuzzRead(f *testing.F) {
	for _, path := range samples(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(lineUser + lineReply[:30]))
	f.Fuzz(func(t *testing.T, data []byte) {
		opt := &transcript.Options{MaxLine: 1 << 20}
		file, err := transcript.Read(bytes.NewReader(data), opt)
		if err != nil {
			return
		}
		again, err := transcript.Read(bytes.NewReader(zipped(t, data)), opt)
		if err != nil {
			t.Fatalf("read plain and not packed: %v", err)
		}
		if d := cmp.Diff(ids(file), ids(again)); d != "" {
			t.Fatal(d)
		}
		for _, tr := range file.Transcripts {
			checkCompactions(t, tr)
		}
	})
}

// BenchmarkRead reads the largest session of each agent.
func BenchmarkRead(b *testing.B) {
	dir, _ := index(b)
	for _, file := range []string{"pi-mono/before-compaction.jsonl.gz", "entire-cli/long-bccb77bb88fa-1.jsonl.gz", "own-runs/codex-rollout.jsonl.gz", "tau-bench/gpt-4o-airline-public.jsonl.gz"} {
		data := content(b, filepath.Join(dir, file))
		b.Run(filepath.Base(filepath.Dir(file)), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transcript.Read(bytes.NewReader(data), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
