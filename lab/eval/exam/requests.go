package exam

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/text"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// The files of a request to a model. The last one is for the answer.
const (
	requestKey    = "key.json"
	requestSystem = "system.txt"
	requestText   = "request.txt"
	requestSchema = "schema.json"
	requestHelp   = "INSTRUCTIONS.txt"
	requestAnswer = "answer.txt"
)

// Requests are the requests of policies to a model, as numbered folders in which answers
// can be written. It is safe for concurrent use.
type Requests struct {
	dir string

	mu    sync.Mutex
	known map[string]string // the folder's name by the hash of the request
	last  int
	open  []string // folders of this run that wait for an answer
}

// OpenRequests finds the requests of earlier runs in a folder, which need not exist. The
// error wraps cli.ErrInvalid when one cannot be read.
func OpenRequests(dir string) (*Requests, error) {
	r := &Requests{dir: dir, known: map[string]string{}}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name(), requestKey)
		var key struct{ Hash string }
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &key)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w; remove the folder %s, and the request is written anew", cli.ErrInvalid, path, err, e.Name())
		}
		r.known[key.Hash], r.last = e.Name(), max(r.last, n)
	}
	return r, nil
}

// answer returns the answer to a request. Without one it is false, and the request is
// written to a folder.
func (r *Requests) answer(p *prompt.Prompt, o *llm.Options) (string, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hash := requestHash(p, o)
	name, ok := r.known[hash]
	if ok {
		data, err := os.ReadFile(filepath.Join(r.dir, name, requestAnswer))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", false, err
		}
		if answer := strings.TrimSpace(string(data)); answer != "" {
			return answer, true, nil
		}
	} else {
		r.last++
		name = fmt.Sprintf("%02d", r.last)
		if err := r.writeRequest(name, hash, p, o); err != nil {
			return "", false, err
		}
		r.known[hash] = name
	}
	if !slices.Contains(r.open, name) {
		r.open = append(r.open, name)
	}
	return "", false, nil
}

// writeRequest writes the folder of a request.
func (r *Requests) writeRequest(name, hash string, p *prompt.Prompt, o *llm.Options) error {
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	system := make([]string, len(p.System))
	for i, s := range p.System {
		system[i] = s.Text
	}
	request := string(text.Encode(&prompt.Prompt{Tools: p.Tools, Messages: p.Messages}))
	if len(p.Messages) == 1 && len(p.Tools) == 0 {
		request = p.Messages[0].Text()
	}
	files := map[string]string{
		requestSystem: strings.Join(system, "\n\n"), requestText: request, requestKey: fmt.Sprintf("{\"hash\": %q}\n", hash),
	}
	help := "Answer as the model that gets system.txt as its system prompt and request.txt as the\nmessage. Write the answer alone, word for word, into answer.txt in this folder.\n"
	if o.MaxOutput > 0 {
		help += fmt.Sprintf("It may have at most %d tokens.\n", o.MaxOutput)
	}
	if o.Schema != nil {
		files[requestSchema] = o.Schema.JSON + "\n"
		help += "It is one JSON object of the shape in schema.json.\n"
	}
	files[requestHelp] = help
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(files[file]), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// requestHash identifies a request by everything that may change the answer.
func requestHash(p *prompt.Prompt, o *llm.Options) string {
	h := sha256.New()
	h.Write(text.Encode(p))
	if o.Schema != nil {
		fmt.Fprintf(h, "\x00%s", o.Schema.JSON)
	}
	fmt.Fprintf(h, "\x00%d", o.MaxOutput)
	return hex.EncodeToString(h.Sum(nil))
}

// Waiting is the error that names the open requests and says what to do. It wraps
// ErrWaiting.
func (r *Requests) Waiting() error {
	open := "1 open request"
	if n := len(r.open); n != 1 {
		open = fmt.Sprintf("%d open requests", n)
	}
	return fmt.Errorf("%s in %s: %s\nINSTRUCTIONS.txt in each folder says how to write answer.txt there. Then run the same command again;\nit writes the prompts when nothing waits any more, and answers may lead to further requests: %w",
		open, r.dir, strings.Join(slices.Sorted(slices.Values(r.open)), " "), ErrWaiting)
}

// FileModel is a model whose answers are read from files, for one prompt. At the first
// request without an answer it stops the work, since the next request depends on it. It
// is safe for concurrent use.
type FileModel struct {
	requests *Requests
	stop     context.CancelFunc

	mu  sync.Mutex
	err error
}

// Model is a model that answers from the folders; stop cancels the work that uses it.
func (r *Requests) Model(stop context.CancelFunc) *FileModel {
	return &FileModel{requests: r, stop: stop}
}

// Model implements llm.Generator.
func (m *FileModel) Model() string { return "files:model" }

// Generate implements llm.Generator.
func (m *FileModel) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	o = cmp.Or(o, &llm.Options{})
	answer, ok, err := m.requests.answer(p, o)
	if err != nil || !ok {
		err = cmp.Or(err, ErrWaiting)
		m.mu.Lock()
		m.err = errors.Join(m.err, err)
		m.mu.Unlock()
		m.stop()
		return nil, &llm.APIError{Provider: "files", Kind: llm.ErrCanceled, Message: err.Error(), Err: context.Canceled}
	}
	reply := &llm.Reply{
		Message: thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: answer}}},
		Text:    answer, Stop: wire.StopEnd, Model: m.Model(),
	}
	if o.Schema != nil {
		reply.JSON, _ = rawjson.FindObject(answer)
	}
	return reply, nil
}

// Failed returns why the work was stopped; nil when it was not.
func (m *FileModel) Failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
