package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/test/longhistory"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// measured is what speed.mjs of lab/peers writes.
type measured struct {
	Node       string `json:"node"`
	Tokenizers []struct {
		Name   string  `json:"name"`
		Text   string  `json:"text"`
		Tokens int     `json:"tokens"`
		Rate   float64 `json:"rate"` // MB/s
	} `json:"tokenizers"`
	Apply []struct {
		Name string  `json:"name"`
		Size int     `json:"size"`
		MS   float64 `json:"ms"`
	} `json:"apply"`
}

// question is a history as the peers read it: see lab/README.md.
type question struct {
	Budget   int               `json:"budget"`
	Messages []neutral.Message `json:"messages"`
	Tokens   []int             `json:"tokens"`
}

// runPeers measures the libraries of npm for the parts that were asked for; nil
// where they are not installed.
func runPeers(ctx context.Context, root string, asked map[string]bool, rounds int) (*measured, error) {
	dir := filepath.Join(root, "lab", "peers")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return nil, nil
	}
	temp, err := os.MkdirTemp("", "palimpsest-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	job := struct {
		Rounds    int               `json:"rounds"`
		Texts     map[string]string `json:"texts"`
		Histories map[int]string    `json:"histories"`
	}{rounds, map[string]string{}, map[int]string{}}
	for _, text := range texts {
		if !asked["tokenizers"] {
			break
		}
		s, err := readText(root, text.globs)
		if err != nil {
			return nil, err
		}
		job.Texts[text.name] = filepath.Join(temp, text.name)
		if err := os.WriteFile(job.Texts[text.name], []byte(s), 0o600); err != nil {
			return nil, err
		}
	}
	for _, size := range sizes {
		if !asked["others"] {
			break
		}
		body, err := history(size)
		if err != nil {
			return nil, err
		}
		job.Histories[size] = filepath.Join(temp, fmt.Sprint(size))
		if err := os.WriteFile(job.Histories[size], body, 0o600); err != nil {
			return nil, err
		}
	}
	arg, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "speed.mjs", string(arg))
	cmd.Dir = dir
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("node speed.mjs: %w\n%s", err, words.String())
	}
	m := &measured{}
	if err := json.Unmarshal(out, m); err != nil {
		return nil, fmt.Errorf("node speed.mjs: %w", err)
	}
	return m, nil
}

// history is the history that our own benchmarks compact, as a question.
func history(size int) ([]byte, error) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		return nil, err
	}
	th, err := thread.New("bench").Append(longhistory.Messages(size, counter.Message)...)
	if err != nil {
		return nil, err
	}
	q := question{Budget: size / 4}
	for _, m := range th.All() {
		q.Messages = append(q.Messages, neutral.MessageOf(m))
		q.Tokens = append(q.Tokens, counter.Message(m))
	}
	return json.Marshal(q)
}
