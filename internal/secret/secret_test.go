package secret

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestKinds: the example of each kind is masked, alone, in a line of its own, and in JSON, and nothing else of it.
func TestKinds(t *testing.T) {
	for _, k := range kinds {
		before, rest, _ := strings.Cut(k.example, "<")
		found, after, _ := strings.Cut(rest, ">")
		plain := before + found + after
		mask := func(text string) string {
			masked := Mask(text)
			if again := Mask(masked); again != masked {
				t.Errorf("%s: masked twice: %s", k.name, again)
			}
			if strings.Contains(masked, found) || !strings.Contains(masked, "[secret: "+k.name+", ") {
				t.Errorf("%s: %s", k.name, masked)
			}
			return masked
		}
		if masked := mask(plain); !strings.HasPrefix(masked, before) || !strings.HasSuffix(masked, after) {
			t.Errorf("%s: more than the secret is gone: %s", k.name, masked)
		}
		mask("first\n" + plain + "\nlast")
		within := "a\n" + plain + "\nb"
		for range 2 { // as arguments of a call, and those in a request
			data, err := json.Marshal(map[string]string{"command": within})
			if err != nil {
				t.Fatal(err)
			}
			if found = jsonText(found); !json.Valid([]byte(mask(string(data)))) {
				t.Errorf("%s: not JSON any more: %s", k.name, Mask(string(data)))
			}
			within = string(data)
		}
	}
}

func jsonText(s string) string {
	data, _ := json.Marshal(s)
	return string(data[1 : len(data)-1])
}

// TestNoSecrets: what only looks like a secret stays.
func TestNoSecrets(t *testing.T) {
	for _, text := range []string{
		`password = getPassword()`, `token: string`, `apiKey: process.env.API_KEY`, `password=password`, `"password": "string"`,
		`Authorization: Bearer $TOKEN`, `Authorization: Bearer ${token}`, `-H "Authorization: Bearer YOUR_API_KEY_1"`, `export TOKEN=$(cat file)`,
		`--password PASSWORD`, `--token <token>`, `--password string   the password`, `class="sk-loading-spinner-with-long-name"`, `task-1-management-of-everything-2`,
		`https://example.com:8080/a@b`, `git@github.com:owner/name.git`, `postgres://USER:$PASSWORD@host/db`, `max_tokens=4096`, `MAX_TOKENS=4096`,
		`sk-ant-xxxxxxxxxxxxxxxxxxxxxxxx`, `key = "primary_key_1"`, `-----BEGIN PUBLIC KEY-----`, `sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		`the password is needed`, "password: string\n", "token: required1, of the user", "secret: shipq-tls\n", `Basic authentication is off`, `Authorization: Basic $CREDENTIALS`, `"auth": "required"`,
		`//registry.npmjs.org/:_authToken=${NPM_TOKEN}`, `machine learning`, `mysql -u root -p shipq`, `AccountKey=<key>`, `LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUQ=`, `sg.internal.example.com`,
		`[secret: GitHub token, 40 characters]`, ``,
	} {
		if masked := Mask(text); masked != text {
			t.Errorf("%q became %q", text, masked)
		}
	}
}

// TestKeyLines: nothing of a private key stays, however a tool shows its lines, and however long it is.
func TestKeyLines(t *testing.T) {
	const line = "MIIEpAIBAAKCAQEAxGdv3q1sPq1aB3dE4fG5hI6jK7lM8nO9pQ0rS1tU2vW3xY4z"
	for _, form := range []string{"%[2]s", "%6[1]d\t%[2]s", "%6[1]d→%[2]s", "%05[1]d| %[2]s", "L%[1]d: %[2]s", "%[1]d:%[2]s", "keys/id_rsa:%[1]d:%[2]s", "id_rsa-%[1]d-%[2]s",
		"-%[2]s", "+%[2]s", "> %[2]s", "# %[2]s", "// %[2]s", "  \"%[2]s\",", "\"%[2]s\\n\" +", "'%[2]s\\n'"} {
		for _, lines := range []int{5, 400} {
			key := fmt.Sprintf(form, 1, "-----BEGIN RSA PRIVATE KEY-----") + "\n"
			for n := range lines {
				key += fmt.Sprintf(form, n+2, line) + "\n"
			}
			text := "before\n" + key + fmt.Sprintf(form, lines+2, "-----END RSA PRIVATE KEY-----") + "\nbehind it all"
			for range 3 { // as it is, in a request, and in one that is quoted in another
				masked := Mask(text)
				if strings.Contains(masked, line[40:]) || !strings.Contains(masked, "before") || !strings.Contains(masked, "behind it all") || Mask(masked) != masked {
					t.Errorf("%s, %d lines: %.300s", form, lines, masked)
				}
				text = `"` + jsonText(text) + `"`
			}
		}
	}
}

// TestStaysJSON: JSON is JSON afterwards, whatever stands beside whatever else.
func TestStaysJSON(t *testing.T) {
	pieces := []string{"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "ABCDEFGHIJKLMNO", "MIIEpAIBAAKCAQEAxGdv3q1sPq1aB3dE4fG5hI6j", "\n", "\t", "\\", `"`, "'", " ", ",", "<", "&", "1",
		"password", "secret_", "=", ": ", "TOKEN=", "--token ", "hunter2x9", "Authorization: Bearer ", "://u:", "@", " -u a:", "ghp_", "é", "→"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 6_000 {
		var b strings.Builder
		for range 1 + r.IntN(14) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := b.String()
		for range 2 {
			text = `["` + jsonText(text) + `","` + jsonText(pieces[r.IntN(len(pieces))]) + `"]`
			if masked := Mask(text); !json.Valid([]byte(masked)) {
				t.Fatalf("%s is not JSON any more: %s", text, masked)
			} else if again := Mask(masked); again != masked {
				t.Fatalf("%s, masked twice: %s", masked, again)
			}
		}
	}
}

// TestLongNames: what a name begins with again and again is looked at once.
func TestLongNames(t *testing.T) {
	spent := func(piece string) time.Duration {
		text, began := strings.Repeat(piece, 4096), time.Now()
		Mask(text)
		return time.Since(began)
	}
	spent("password ")
	for _, name := range []string{"password", "secret", "x_pwd", "PASSWORD", "password: ", "machine x login y ", "docker login ", "basic auth"} {
		if words, one := spent("password "), spent(name); one > 50*words {
			t.Errorf("%s: one long name takes %v, as many words %v", name, one, words)
		}
	}
}

// TestRawForms: a secret that only the raw form of a part or a message has does not go out with it.
func TestRawForms(t *testing.T) {
	const raw = `{"type":"text","text":"read it","citations":[{"url":"https://u:hunter2@example.com/"}]}`
	text := thread.Text{Text: "read it", Source: thread.Source{API: "x", Raw: raw}}
	plain := thread.Text{Text: "read it", Source: thread.Source{API: "x", Raw: `{"text":"read it"}`}}
	result := thread.ToolResult{CallID: "1", Content: []thread.Part{plain}, Source: text.Source}
	for _, m := range []thread.Message{
		{Parts: []thread.Part{text}}, {Parts: []thread.Part{result}}, {Parts: []thread.Part{plain}, Frame: thread.NewFrame("x", raw, 0, 1, 1)},
	} {
		masked, n := Messages([]thread.Message{m})
		if n != 1 || masked[0].Frame != nil || strings.Contains(fmt.Sprintf("%+v", masked), "hunter2") || m.Parts[0].From().Raw == "" {
			t.Errorf("%d changed: %+v", n, masked)
		}
	}
	if _, n := Messages([]thread.Message{{Parts: []thread.Part{plain}, Frame: thread.NewFrame("x", `{"text":"read it"}`, 0, 1, 1)}}); n != 0 {
		t.Error("a message without a secret was changed")
	}
}
