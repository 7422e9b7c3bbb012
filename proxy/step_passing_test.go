package proxy_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// sample is a request of a real client.
type sample struct {
	name, Method, Path string
	Headers            map[string]string
	Body               json.RawMessage
}

func samples(t testing.TB) []sample {
	t.Helper()
	root := corpus.Dir(t, "wire-samples")
	var list []sample
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".json" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var s sample
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		s.name, _ = filepath.Rel(root, file)
		list = append(list, s)
		return nil
	})
	if err != nil || len(list) == 0 {
		t.Fatal(err, len(list))
	}
	return list
}

// TestSamplesPass: what real clients send goes through byte for byte below the
// mark, with every header, whether it is looked into or not.
func TestSamplesPass(t *testing.T) {
	for name, o := range map[string]proxy.Options{"too small to look at": {Window: 1 << 22}, "looked at": {Window: 1_000_000}} {
		t.Run(name, func(t *testing.T) {
			up := proxytest.New(t)
			url, p := start(t, up, o)
			for _, s := range samples(t) {
				t.Run(s.name, func(t *testing.T) { samplePasses(t, up, url, s, name == "looked at") })
			}
			if totals := p.Totals(); totals.Faults != 0 || totals.Edited != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// plainly adds no header of its own.
var plainly = &http.Transport{DisableCompression: true}

func samplePasses(t *testing.T, up *proxytest.Upstream, url string, s sample, looked bool) {
	up.Forget()
	r, err := http.NewRequest(s.Method, url+s.Path, bytes.NewReader(s.Body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range s.Headers {
		r.Header[http.CanonicalHeaderKey(k)] = []string{v}
	}
	if looked {
		r.Header.Set(proxy.ThreadHeader, "sample")
	}
	res, err := plainly.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	got := up.Requests()
	if len(got) != 1 {
		t.Fatalf("%d requests went upstream", len(got))
	}
	if !bytes.Equal(got[0].Body, s.Body) {
		t.Errorf("the body changed: %d bytes became %d", len(s.Body), len(got[0].Body))
	}
	if got[0].Path != s.Path || got[0].Method != s.Method {
		t.Errorf("%s %s became %s %s", s.Method, s.Path, got[0].Method, got[0].Path)
	}
	for k, v := range s.Headers {
		key := http.CanonicalHeaderKey(k)
		if key == "Host" || key == "Connection" || key == "Content-Length" {
			continue
		}
		if have := got[0].Header.Get(key); key == "Accept-Encoding" && len(s.Body) >= 64<<10 {
			if have != "gzip" { // the answer may be a refusal that has to be read
				t.Errorf("a large request accepts %q", have)
			}
		} else if have != v {
			t.Errorf("%s: %q became %q", k, v, have)
		}
	}
	for k := range got[0].Header {
		if _, sent := r.Header[k]; !sent && k != "Host" && k != "Content-Length" && k != "User-Agent" {
			t.Errorf("the header %s was added", k)
		}
		if k == proxy.ThreadHeader {
			t.Error("our own header went upstream")
		}
	}
}
