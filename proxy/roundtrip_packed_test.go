package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestPackedBodies: what is too much without its compression, cut off or broken
// passes to the other side byte for byte, and is not read by half.
func TestPackedBodies(t *testing.T) {
	const limit = 256 << 10
	answer, encoding := []byte(okAnswer), ""
	var arrived []byte
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		w.Write(answer)
	}))
	defer upstream.Close()
	p, err := proxy.New(&proxy.Options{OpenAI: upstream.URL + "/v1", Window: 20_000, MaxBody: limit})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	ask := func(body []byte, encoding string) *http.Response {
		t.Helper()
		return post(t, server.URL+paths[wire.Chat], body, http.Header{"Content-Encoding": {encoding}, "Accept-Encoding": {"gzip"}, "Content-Type": {"application/json"}})
	}
	talk := []byte(reading(wire.Chat, `{"path":"a.go"}`, strings.Repeat("a line\n", 8000)))
	wrongSum := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)-8]++
		return b
	}
	for _, kind := range []string{"gzip", "zstd"} {
		whole := packed(t, kind, talk)
		bomb := packed(t, kind, []byte(`{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("x", 20<<20)+`"}]}`))
		if len(bomb) > limit {
			t.Fatalf("%d bytes", len(bomb))
		}
		for name, body := range map[string][]byte{"too much": bomb, "cut off": whole[:len(whole)-100], "without its end": whole[:len(whole)-2], "wrong sum": wrongSum(whole), "no such thing": []byte("plain words")} {
			if kind == "zstd" && name == "wrong sum" {
				continue // its sum is at the end
			}
			arrived = nil
			res := ask(body, kind)
			if got := res.Header.Get("X-Palimpsest-Action"); res.StatusCode != http.StatusOK || got != proxy.Passed || !bytes.Equal(arrived, body) {
				t.Errorf("%s, %s: %s, %s, %d of %d bytes arrived", kind, name, res.Status, got, len(arrived), len(body))
			}
		}
		if res := ask(whole, kind); res.Header.Get("X-Palimpsest-Action") == proxy.Passed {
			t.Errorf("a whole body of %s is not read: %v", kind, res.Header)
		}
	}
	whole := packed(t, "gzip", []byte(okAnswer))
	encoding = "gzip"
	for name, body := range map[string][]byte{"too much": packed(t, "gzip", bytes.Repeat([]byte(" "), 20<<20)), "cut off": whole[:len(whole)-20], "wrong sum": wrongSum(whole)} {
		answer = body
		res := ask(talk, "identity")
		if got, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !bytes.Equal(got, body) || res.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("answer, %s: %s, %d of %d bytes, %v", name, res.Status, len(got), len(body), err)
		}
	}
}
