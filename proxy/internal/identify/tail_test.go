package identify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestExtended: a body that goes on with a known one is read as it would be by
// itself, for real requests cut at every element, with marks that move and with
// histories that part.
func TestExtended(t *testing.T) {
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		t.Run(codec.API(), func(t *testing.T) {
			bodies := wiretest.Corpus(t, codec.API())
			hits := 0
			for _, name := range slices.Sorted(maps.Keys(bodies)) {
				hits += extend(t, codec, name, bodies[name])
			}
			want := 40
			if codec.API() == wire.Gemini {
				want = 10
			}
			if hits < want {
				t.Errorf("only %d bodies were read by what they add", hits)
			}
		})
	}
}

// TestExtendedGemini: calls without ids are numbered through the whole history.
func TestExtendedGemini(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		contents := []string{`{"role":"user","parts":[{"text":"go"}]}`}
		var last *Request
		id := func(n int) string {
			return rapid.SampledFrom([]string{"", "", "", fmt.Sprintf(`"id":"c%d",`, n%5), `"id":"",`, `"id":"local_1",`}).Draw(t, "id")
		}
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			calls, responses := "", []string{}
			for n := range rapid.IntRange(0, 3).Draw(t, "calls") {
				own, name := id(step+n), rapid.SampledFrom([]string{"f", "g"}).Draw(t, "name")
				calls += fmt.Sprintf(`,{"functionCall":{%s"name":%q,"args":{"n":%d}}}`, own, name, n)
				if rapid.IntRange(0, 5).Draw(t, "another") == 0 {
					own = id(step + n + 1)
				}
				responses = append(responses, fmt.Sprintf(`{"functionResponse":{%s"name":%q,"response":{"output":"x"}}}`, own, name))
			}
			contents = append(contents, `{"role":"model","parts":[{"text":"I go on."}`+calls+`]}`)
			if rapid.Bool().Draw(t, "reversed") {
				slices.Reverse(responses)
			}
			if len(responses) == 0 || rapid.IntRange(0, 4).Draw(t, "words") == 0 {
				responses = append(responses, `{"text":"and?"}`)
			}
			contents = append(contents, `{"role":"user","parts":[`+strings.Join(responses, ",")+`]}`)
			text := `{"contents":[` + strings.Join(contents, ",") + `]}`
			whole, err := Decode(gemini.Codec{}, text, waiting)
			if err != nil {
				t.Fatal(err)
			}
			fresh := locateMessages(text, whole, members(text))
			fresh.IDs = chain(t, whole.Messages)
			if last != nil {
				if got := next(last, gemini.Codec{}, text); got != nil {
					if diff := cmp.Diff(whole, got.Prompt); diff != "" {
						t.Fatalf("%s (-whole +extended):\n%s", text, diff)
					}
				}
			}
			last = fresh
		}
	})
}

// next reads a body by what it adds to a request, with the whole body as its source.
func next(before *Request, codec wire.Codec, body string) *Request {
	r := before.extend(codec, NewBody(body), before.Body.common(0, body), waiting)
	if r != nil {
		source := *r.Prompt.Source
		source.Body = body
		r.Prompt.Source = &source
	}
	return r
}

func extend(t *testing.T, codec wire.Codec, name string, body []byte) (hits int) {
	array := gjson.GetBytes(body, messagesMember[codec.API()])
	elements := array.Array()
	if len(elements) < 3 {
		return 0
	}
	with := func(list []string) string {
		var b bytes.Buffer
		b.Write(body[:array.Index])
		b.WriteByte('[')
		for i, e := range list {
			if i > 0 {
				b.WriteString([]string{",", ", ", " ,\n"}[i%3])
			}
			b.WriteString(e)
		}
		b.WriteByte(']')
		b.Write(body[array.Index+len(array.Raw):])
		return b.String()
	}
	random := rand.New(rand.NewPCG(1, uint64(len(body))))
	var last *Request
	list := []string{}
	for i, e := range elements {
		list = append(list, e.Raw)
		if random.IntN(3) == 0 {
			continue
		}
		now := slices.Clone(list)
		switch n := len(now) - 1; random.IntN(5) {
		case 0: // a mark on the last block, as clients move it
			if codec.API() == wire.Anthropic && gjson.Get(now[n], "content").IsArray() && gjson.Get(now[n], "content.0.type").Str == "text" {
				now[n], _ = sjson.SetRaw(now[n], "content.0.cache_control", `{"type":"ephemeral"}`)
			}
		case 1: // an edit of the history
			if random.IntN(4) == 0 && n > 2 {
				now = slices.Delete(now, n-1, n)
			}
		}
		text := with(now)
		whole, err := Decode(codec, text, waiting)
		if err != nil {
			continue
		}
		fresh := locateMessages(text, whole, members(text))
		fresh.IDs = chain(t, whole.Messages)
		if last != nil {
			if got := next(last, codec, text); got != nil {
				hits++
				if diff := cmp.Diff(whole.Messages, got.Prompt.Messages); diff != "" {
					t.Fatalf("%s, %d elements (-whole +extended):\n%s", name, i, diff)
				}
				if diff := cmp.Diff(whole, got.Prompt); diff != "" {
					t.Fatalf("%s, %d elements (-whole +extended):\n%s", name, i, diff)
				}
				if !slices.Equal(fresh.frameEnds, got.frameEnds) || !slices.Equal(fresh.messagesUpTo, got.messagesUpTo) || fresh.messagesEnd != got.messagesEnd || fresh.messagesStart != got.messagesStart {
					t.Fatalf("%s: places %v %v, want %v %v", name, got.frameEnds, got.messagesUpTo, fresh.frameEnds, fresh.messagesUpTo)
				}
				if again, _ := codec.Encode(got.Prompt); string(again) != text {
					t.Fatalf("%s: what was read is written otherwise", name)
				}
				got.IDs = chain(t, got.Prompt.Messages)
				last = got
				continue
			}
		}
		last = fresh
	}
	return hits
}

// TestShell: the encoders write the same without the messages that they replace.
func TestShell(t *testing.T) {
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		light := 0
		bodies := wiretest.Corpus(t, codec.API())
		for name, body := range maps.Clone(bodies) {
			var compact bytes.Buffer // as clients send it
			if json.Compact(&compact, body) == nil {
				bodies[name+", compact"] = compact.Bytes()
			}
		}
		for name, body := range bodies {
			p, err := Decode(codec, string(body), waiting)
			if err != nil || len(p.Messages) < 3 {
				continue
			}
			k := locateMessages(string(body), p, members(string(body)))
			summary := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "what was before"}}}
			for n, messages := range [][]thread.Message{p.Messages[2:], append([]thread.Message{summary}, p.Messages[1:]...), append(slices.Clip(p.Messages), summary)} {
				q := &prompt.Prompt{}
				*q = *p
				q.Messages = messages
				q.Tools = append(slices.Clip(q.Tools), prompt.Tool{Name: "more", Schema: `{"type":"object"}`})
				q.CachePoints = []prompt.CachePoint{{After: -1}, {After: 0}}
				want, err := codec.Encode(q)
				if err != nil {
					t.Fatal(err)
				}
				shell := k.WithoutMessages()
				if len(shell.Source.Body) < len(body) {
					light++
				}
				shell.Messages, shell.Tools, shell.CachePoints = q.Messages, q.Tools, q.CachePoints
				if got, err := codec.Encode(shell); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %d: %v, another body:\n%.2000s\n%.2000s", name, n, err, got, want)
				}
			}
		}
		if codec.API() != wire.Responses && light < 20 {
			t.Errorf("%s: only %d bodies lost their messages", codec.API(), light)
		}
	}
}

// TestExtendedNot: bodies that only look alike are read whole.
func TestExtendedNot(t *testing.T) {
	body := func(system string, texts ...string) string {
		out := ""
		for i, text := range texts {
			role := []string{"user", "assistant"}[i%2]
			if i > 0 {
				out += ","
			}
			q, _ := json.Marshal(text)
			out += fmt.Sprintf(`{"role":%q,"content":%s}`, role, q)
		}
		return `{"model":"m","messages":[` + out + `],"system":"` + system + `"}`
	}
	first := body("s", "a", "b", "c")
	p, err := Decode(anthropic.Codec{}, first, waiting)
	if err != nil {
		t.Fatal(err)
	}
	k := locateMessages(first, p, members(first))
	k.IDs = chain(t, p.Messages)
	for _, other := range []string{
		body("t", "a", "b", "c", "d"), body("s", "x", "b", "c"), `{"model":"m","messages":[],"system":"s"}`, ``, `{`,
		first[:len(first)-1], first + first, `{"model":"m","messages":[{"role":"user","content":"a"}}],"system":"s"}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},],"system":"s"}`,
	} {
		got := next(k, anthropic.Codec{}, other)
		if got == nil {
			continue
		}
		whole, err := Decode(anthropic.Codec{}, other, waiting)
		if err != nil {
			t.Errorf("%s is no request, and was read", other)
		} else if diff := cmp.Diff(whole, got.Prompt); diff != "" {
			t.Errorf("%s (-whole +extended):\n%s", other, diff)
		}
	}
	longer := body("s", "a", "b", "c", "d", "e")
	if got := next(k, anthropic.Codec{}, longer); got == nil || len(got.Prompt.Messages) != 5 {
		t.Error("a step more was read whole")
	}
}
