package render_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var update = flag.Bool("update", false, "write the prompts of testdata/*.txtar anew")

// TestGolden renders each testdata/*.txtar for every API and compares bodies
// and manifests with what stands in the file. Above the first section it says
// which behaviour it pins. A case is a thread in the notation of
// notation_test.go, or a request.API.json, which is then rendered for that API
// only; and a plan. A16
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no golden files")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Error("nothing says what the file is for")
	}
	given := &txtar.Archive{Comment: archive.Comment}
	want, sections := map[string]string{}, map[string]string{}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "want ") {
			want[f.Name] = string(f.Data)
			continue
		}
		sections[f.Name] = string(f.Data)
		given.Files = append(given.Files, f)
	}
	var manifests []string
	sent := map[string][]string{} // manifest → APIs
	for _, api := range threadgen.APIs {
		th, around := source(t, api, sections)
		if th == nil {
			continue
		}
		p, rehydrated := parsePlan(t, th, sections["plan"])
		profile := render.For(api)
		profile.Reach = render.Reach(strings.TrimSpace(sections["reach"]))
		for i := range rehydrated {
			rehydrated[i].Reach = profile.Reach
		}
		out, manifest, err := render.Render(th, p, around, &render.Options{Profile: profile})
		if err == nil {
			out, manifest = render.Append(out, manifest, rehydrated, profile)
		}
		if err != nil {
			t.Fatal(err)
		}
		body := encode(t, codecs[api], out)
		valid(t, codecs[api], body)
		accounted(t, th, p, out, manifest)
		promptHolds(t, th, p, profile, out, manifest)
		if _, whole := sections["request."+api+".json"]; whole && p.Empty() && string(body) != strings.TrimSpace(sections["request."+api+".json"]) {
			t.Errorf("%s: the body did not come out as it went in:\n%s", api, body)
		}
		given.Files = append(given.Files, txtar.File{Name: "want " + api, Data: pretty(t, body)})
		text := describe(manifest)
		if len(sent[text]) == 0 {
			manifests = append(manifests, text)
		}
		sent[text] = append(sent[text], api)
	}
	for _, text := range manifests {
		given.Files = append(given.Files, txtar.File{Name: "want manifest for " + strings.Join(sent[text], ", "), Data: []byte(text)})
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(given), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got := map[string]string{}
	for _, f := range given.Files {
		if strings.HasPrefix(f.Name, "want ") {
			got[f.Name] = string(f.Data)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go test ./render -update writes the file anew (-want +got):\n%s", diff)
	}
}

// source makes the thread of a case for an API, with ids m1, m2, …; nil when
// the case is a request of another API.
func source(t *testing.T, api string, sections map[string]string) (*thread.Thread, *prompt.Prompt) {
	t.Helper()
	if notation, ok := sections["thread"]; ok {
		return parseThread(t, notation), base(api)
	}
	body, ok := sections["request."+api+".json"]
	if !ok {
		return nil, nil
	}
	valid(t, codecs[api], []byte(body))
	p, err := codecs[api].Decode(strings.TrimSpace(body))
	if err != nil {
		t.Fatal(err)
	}
	return numbered(t, p.Messages), p
}

func numbered(t *testing.T, messages []thread.Message) *thread.Thread {
	t.Helper()
	for i := range messages {
		messages[i].ID = thread.ID(fmt.Sprint("m", i+1))
	}
	th, err := thread.New("golden").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// pretty puts the members of a body, and the elements of its messages, on
// lines of their own; every byte of them stays.
func pretty(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	gjson.ParseBytes(body).ForEach(func(key, value gjson.Result) bool {
		fmt.Fprintf(&b, "%s: ", key.Str)
		if name := key.Str; name != "messages" && name != "input" && name != "contents" {
			fmt.Fprintln(&b, strings.ReplaceAll(value.Raw, "\n", " "))
			return true
		}
		fmt.Fprintln(&b)
		value.ForEach(func(_, element gjson.Result) bool {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(element.Raw, "\n", " "))
			return true
		})
		return true
	})
	return b.Bytes()
}

// describe writes a manifest for people, a line for each message of the prompt.
func describe(m *render.Manifest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "format %s\n", m.Format)
	for i, o := range m.Messages {
		fmt.Fprintf(&b, "%2d %s", i, orDash(o.ID))
		if o.Record.Action != plan.Include {
			fmt.Fprintf(&b, " %s", o.Record)
		}
		if o.Synthetic {
			b.WriteString(" synthetic")
		}
		b.WriteByte('\n')
	}
	for _, h := range m.Hidden {
		fmt.Fprintf(&b, "hidden %s by %s\n", h.ID, h.Record)
	}
	for _, r := range m.Repairs {
		fmt.Fprintf(&b, "repair %s: %s\n", r.ID, r.What)
	}
	return b.String()
}

func orDash(id thread.ID) thread.ID {
	if id == "" {
		return "-"
	}
	return id
}
