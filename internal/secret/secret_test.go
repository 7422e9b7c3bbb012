package secret

import (
	"encoding/json"
	"strings"
	"testing"
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
		`the password is needed`, `[secret: GitHub token, 40 characters]`, ``,
	} {
		if masked := Mask(text); masked != text {
			t.Errorf("%q became %q", text, masked)
		}
	}
}
