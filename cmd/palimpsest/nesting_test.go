package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// brackets is the conversation of an agent that has read a file of six million
// brackets, packed: some kilobytes that a recursive reader of JSON would follow to
// the end of its stack.
func brackets(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"model":"m","messages":[{"role":"user","content":"Read all files."}`)
	for n := range 12 {
		text := strings.Repeat(`some line of the file\n`, 300)
		if n == 5 {
			text = strings.Repeat("[", 6_000_000)
		}
		fmt.Fprintf(z, `,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a.go\"}"}}]},{"role":"tool","tool_call_id":"c%d","content":"%s"}`, n, n, text)
	}
	fmt.Fprint(z, `],"tools":[{"type":"function","function":{"name":"Read","parameters":{"type":"object"}}}]}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestNesting: neither the command nor the daemon ends over text that nests without
// an end.
func TestNesting(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	packed := brackets(t)
	file := filepath.Join(dir, "brackets.json.gz")
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range corpus.EveryNth([][]string{
		{"compact", file, "--budget", "8000"},
		{"compact", file, "--budget", "16000", "--policy", "session"},
		{"inspect", file},
		{"check", file, "--to", "openai"},
	}, 4) {
		t.Run(strings.Join(append(args[:1:1], args[2:]...), " "), func(t *testing.T) {
			out, err := exec.Command("palimpsest", args...).CombinedOutput()
			if err != nil || len(out) == 0 {
				t.Errorf("%v: %.500s", err, out)
			}
		})
	}
	t.Run("a transcript that nests too deep", func(t *testing.T) {
		deep := filepath.Join(dir, "deep.json")
		if err := os.WriteFile(deep, []byte(`{"messages":[{"role":"user","content":"x"},{"role":"user","content":`+strings.Repeat("[", 6_000_000)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"compact", deep, "--budget", "8000"}, {"check", deep, "--to", "openai"}} {
			out, err := exec.Command("palimpsest", args...).CombinedOutput()
			want := "line 1: the JSON nests too deep: over 1000 levels at byte 1065, in messages[1].content[0][0][0]"
			if args[0] == "check" {
				want = "the JSON nests too deep: over 1000 levels"
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 4 || !strings.Contains(string(out), want) || len(out) > 400 {
				t.Errorf("%s: %v: %.500s", args[0], err, out)
			}
		}
	})
	t.Run("serve", func(t *testing.T) {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%d bytes"},"finish_reason":"stop"}]}`, n)
		}))
		defer upstream.Close()
		address := serving(t, "--store", "sqlite:"+filepath.Join(dir, "p.db"), "--openai-upstream", upstream.URL+"/v1", "--window", "20000")
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		for n, body := range [][]byte{plain, packed, plain} {
			r, err := http.NewRequest(http.MethodPost, address+"/v1/chat/completions", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			tight := len(body) < len(plain) // packed so tightly that it passes as it is
			if tight {
				r.Header.Set("Content-Encoding", "gzip")
			}
			r.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatalf("request %d: %v", n, err)
			}
			said, err := io.ReadAll(res.Body)
			res.Body.Close()
			read := res.Header.Get("X-Palimpsest-Tokens-Before") != ""
			if err != nil || res.StatusCode != http.StatusOK || read == tight || tight && res.Header.Get("X-Palimpsest-Reason") != "encoding" {
				t.Errorf("request %d: %s %v: %s, %v", n, res.Status, res.Header, said, err)
			}
		}
	})
}

// serving starts the daemon in a process of its own and returns its address.
func serving(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("palimpsest", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	address := ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "serving on ")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			if text := lines.Text(); strings.HasPrefix(text, "fatal error") {
				t.Log(text)
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon: %v", err)
		}
	})
	if address == "" {
		t.Fatal("the daemon does not serve")
	}
	return address
}
