// Package secret masks keys, tokens and passwords in texts that leave the machine: pages that are
// handed on, sessions for another agent, logs. What is stored is never changed. Package redact does it in addresses.
//
// It finds what is written as secrets usually are (kinds). A password in plain prose looks like
// any other word and stays.
package secret

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// Mask replaces each secret in a text by what it is and how long, such as
// "[secret: GitHub token, 40 characters]". The text may be JSON, also within a string of other JSON: it
// is JSON afterwards. The time is linear in the text. A masked text stays as it is.
func Mask(text string) string {
	lower := lowerASCII(text)
	stands := wordsIn(lower)
	for i := range kinds {
		k := &kinds[i]
		for _, word := range k.begin {
			if !stands[word] {
				continue
			}
			if masked := k.mask(text, lower, word); masked != text {
				text, lower = masked, lowerASCII(masked)
				stands = wordsIn(lower)
			}
		}
	}
	return text
}

// wordsIn are the words with which secrets begin that stand in a text in lower case. It goes over the text once,
// whatever the number of words.
func wordsIn(lower string) map[string]bool {
	var found map[string]bool
	table := words()
	for i := 1; i < len(lower); i++ {
		n := table.pairs[int(lower[i-1])<<8|int(lower[i])]
		for _, word := range table.of[n] {
			if strings.HasPrefix(lower[i-1:], word) && !found[word] {
				if found == nil {
					found = map[string]bool{}
				}
				found[word] = true
			}
		}
	}
	return found
}

// wordTable has the words by their first two bytes: pairs says where in of.
type wordTable struct {
	pairs [1 << 16]uint8
	of    [][]string
}

var words = sync.OnceValue(func() *wordTable {
	t := &wordTable{of: [][]string{nil}}
	for _, k := range kinds {
		for _, word := range k.begin {
			n := &t.pairs[int(word[0])<<8|int(word[1])]
			if *n == 0 {
				*n = uint8(len(t.of))
				t.of = append(t.of, nil)
			}
			t.of[*n] = append(t.of[*n], word)
		}
	}
	return t
})

// kind is a way in which secrets are written.
type kind struct {
	name string
	// begin are the words that a match begins with, in lower case. They are found fast.
	begin []string
	// inWord says that the word may be the end of another, as in PGPASSWORD.
	inWord bool
	// match has the secret as its first group.
	match func() *regexp.Regexp
	// check tells a secret from what only stands in the place of one; nil if nothing else is
	// written so.
	check   func(string) bool
	example string // <> around the secret
}

// longest is how far a match may reach, in bytes, but for private keys.
const longest = 8 << 10

// What follows the first line of a private key: lines, which may stand behind numbers, marks of a diff or a comment,
// and the name of the file. Behind quotes, as in code and JSON, they go on.
const (
	privateKey = "private key"
	lineEnd    = `(?:\s|\\+[nrt])`
	lineBegin  = `(?:[\w./-]{1,100}[:-])?[ \t]{0,20}L?[0-9]{0,6}[ \t]{0,20}(?:→|//|[-+|:>#*;]|\\+t|\\+u003e){0,3}[ \t]{0,20}`
	keyLines   = `(?:(?:` + lineEnd + `+` + lineBegin + `){0,3}(?:[A-Z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\"]{1,80}))*` +
		`(?:` + lineEnd + `*` + lineBegin + `(?:[A-Z0-9+/=]{1,80}` + lineEnd + `*` + lineBegin + `)?-----END [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,30}-----)?`
)

// keyGoesOn matches a line of a private key behind the quotes after another one.
var keyGoesOn = at("(?:[\\s\"'`,+.]|\\\\+[nrt\"']){1,60}([A-Z0-9+/=]{32,}" + keyLines + ")")

// Between a name and its value in code, JSON, YAML and headers; quotes may be escaped.
const (
	quote   = `(?:\\*["'])?`
	assign  = quote + `\s{0,20}(?::=|=>|=|:)\s{0,20}` + quote
	value   = "[^\\s\"'`\\\\$<>{}()\\[\\]|;&,*]" // not what a shell or a template fills in
	apart   = `(?:\s|\\+[nrt]){1,20}`
	options = `(?: [^\s"'\\]{1,60}){0,6}?`
)

func at(pattern string) func() *regexp.Regexp { return lazyregexp.New(`^(?i:` + pattern + `)`) }

// kinds is the table of all kinds.
var kinds = []kind{
	{privateKey, []string{"-----begin "}, true, at(`(-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,30}-----` + keyLines + `)`), nil,
		`<-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAxGdv3q1sPq1\nAAAA\n-----END RSA PRIVATE KEY----->`},
	{"GitHub token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, false, at(`([a-z_]+_[A-Z0-9_]{22,255})`), random,
		`git clone https://<ghp_q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8>`},
	{"GitLab token", []string{"glpat-"}, false, at(`(glpat-[A-Z0-9_.-]{20,255})`), random, `PRIVATE-TOKEN: <glpat-a1B2c3D4e5F6g7H8i9J0>`},
	{"API key", []string{"sk-", "gsk_", "xai-", "hf_", "aiza"}, false, at(`(sk-[A-Z0-9_-]{20,255}|(?:gsk_|xai-|hf_)[A-Z0-9]{30,255}|AIza[A-Z0-9_-]{35})`), random,
		`use <sk-ant-api03-Zx81mQ0aLs92kdPq-Wn3>, it is new`},
	{"AWS access key", []string{"akia", "asia"}, false, at(`((?-i:AKIA|ASIA)(?-i:[A-Z0-9]{16}))\b`), random, `aws configure set aws_access_key_id <AKIAQ7RZ2M4X5N6B8V9C>`},
	{"Slack token", []string{"xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "hooks.slack.com/services/"}, false, at(`([a-z.-]+[A-Z0-9/_.-]{20,255})`), random, `slack --with <xoxb-2817364590-a1b2c3d4e5>`},
	{"Stripe key", []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"}, false, at(`([a-z_]+_[A-Z0-9+/=]{16,255})`), random, `stripe.api_key = '<sk_live_51H8xQ2eZvKYlo2C>'`},
	{"registry token", []string{"npm_", "pypi-"}, false, at(`(npm_[A-Z0-9]{30,255}|pypi-[A-Z0-9_-]{30,1000})`), random, `_authToken=<npm_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6>`},
	{"service token", []string{"sg.", "hvs.", "ya29.", "gocspx-", "dckr_pat_", "dop_v1_", "shpat_", "lin_api_", "xapp-", "age-secret-key-"}, false, at(`([a-z0-9_-]+[._-](?:\.?[A-Z0-9_-]){16,600})`), random,
		`echo <dckr_pat_q1W2e3R4t5Y6u7I8o9P0a1S2d3F> | docker login -u shipq --password-stdin`},
	{"JSON web token", []string{"eyj"}, false, at(`(eyJ[A-Z0-9_-]{8,}\.eyJ[A-Z0-9_-]{8,}\.[A-Z0-9_-]*)`), nil, `id_token <eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl>`},
	{"authorization header", []string{"authorization", "bearer "}, false, at(`(?:authorization` + assign + `(?:(?:bearer|basic|token)\s{1,20})?|bearer\s{1,20})([A-Z0-9+/=._~-]{12,})`), random,
		`curl -H "Authorization: Bearer <8d1f0c2b7a6e5d4c3b2a>"`},
	{"name and password in base64", []string{"basic ", `auth"`, `auth\`, "_auth="}, false, at(`(?:basic\s{1,20}|_?auth` + assign + `)([A-Z0-9+/]{8,500}={0,2})`), pair,
		`Proxy-Authorization: Basic <c2hpcHE6aHVudGVy>`},
	{"key header", []string{"x-api-key", "x-goog-api-key", "x-auth-token", "api-key"}, false, at(`[a-z-]+` + assign + `([A-Z0-9+/=._~-]{12,})`), random, `{"x-api-key":"<c9d8e7f6a5b4c3d2>"}`},
	{"password in an address", []string{"://"}, true, at(`://[^\s:/@"'<>\\]{0,100}:([^\s:/@"'<>\\${}\[\]]{2,255})@`), notBlank, `postgres://shipq:<hunter2>@db.example.com/shipq`},
	{"password option", []string{"--password", "--passwd", "--token", "--api-key", "--secret", "--auth-token", "--access-token", "--client-secret"}, false,
		at(`[a-z-]+(?:=|\s{1,20})` + quote + `([^\s"'\\$<>{}()\[\]|;&,*-]` + value + `{3,})`), given, `mysql --user root --password <hunter2>`},
	{"password option", []string{"sshpass ", "mysql ", "mysqldump ", "docker login "}, false,
		at(`(?:mysql(?:dump)?` + options + ` -p|(?:sshpass|docker login)` + options + ` -p ?)` + quote + `(` + value + `{4,255})`), random, `sshpass -p <hunter2> ssh admin@db.example.com`},
	{"password option", []string{" -u ", " --user ", " -u=", " --user="}, true, at(` --?[a-z]+[ =]` + quote + `[^\s:"'\\$]{1,100}:(` + value + `{3,})`), random, `curl -s -u admin:<hunter2> https://example.com`},
	{"secret variable", []string{"password=", "passwd=", "token=", "secret=", "api_key=", "apikey=", "access_key=", "secret_key=", "private_key=", "_pass=", "_pwd="}, true,
		at(`(?-i:[A-Z_]+)=` + quote + `(` + value + `{4,})`), given, `PGPASSWORD=<hunter2> psql -c 'select 1'`},
	{"password of a registry", []string{"_password=", "_authtoken="}, false, at(`[a-z_]+=(` + value + `{4,255})`), given, `//registry.example.com/:_authToken=<9f2ab4c4b4b34c3>`},
	{"password of .netrc", []string{"machine ", "default login "}, false,
		at(`(?:machine` + apart + `[^\s\\]{1,255}|default)` + apart + `login` + apart + `[^\s\\]{1,255}` + apart + `password` + apart + `(` + value + `{3,255})`), given, `machine git.example.com\n  login shipq\n  password <hunter>`},
	{"AWS secret key", []string{"secret_access_key", "secretaccesskey"}, true, at(`[a-z_]+` + assign + `([A-Z0-9+/]{40})\b`), random, `aws_secret_access_key = <q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8l9Z0>`},
	{"key of a connection", []string{"accountkey=", "sharedaccesskey=", "?sig=", "&sig="}, true, at(`[?&]?[a-z]+=([A-Z0-9+/=%_-]{20,255})`), random,
		`AccountName=shipq;AccountKey=<q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6==>;EndpointSuffix=core.windows.net`},
	{"private key in base64", []string{"ls0tls1crudjtib"}, false, at(`((?-i:LS0tLS1CRUdJTiB(?:QUklW|SU0Eg|FQyBQ|PUEVO|FTkNS))[A-Z0-9+/=]{16,})`), nil, `    client-key-data: <LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2d0lC>`},
	{"password of a setting", []string{"password:", "passwd:", "passphrase:", "pwd:", "secret:", "token:", "api_key:", "apikey:", "api-key:", "access_key:", "secret_key:", "secret_key_base:"}, true,
		at(`[a-z_-]+:[ \t]{1,20}(` + value + `{6,255})[ \t]{0,20}(?:#[^\n\\]{0,200})?(?:[\r\n"']|\\+[nrt"']|$)`), random, `spring.datasource.password: <hunter2>`},
	{"password", []string{"password", "passwd", "pwd", "secret", "_token", "-token", "authtoken", "api_key", "apikey", "api-key", "access_key", "accesskey", "secret_key", "secretkey"}, true,
		at(`[a-z_-]+(?:` + quote + `\s{0,20}(?::=|=>|=|:)\s{0,20}\\*["']|=)([A-Z0-9+/=_.~!@#%^-]{6,255})`), random, `login(password="<hunt-er2>")`},
}

// mask replaces the secrets whose match begins with a word.
func (k *kind) mask(text, lower, word string) string {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		i := strings.Index(lower[from:], word)
		if i < 0 {
			break
		}
		start := from + i
		from = start + len(word)
		if !k.inWord && !beginsWord(text, start) {
			continue
		}
		found := k.find(k.match(), text[start:])
		if found == nil { // nor will it in the rest of the same name
			for from < len(lower) && inName(lower[from-1]) && inName(lower[from]) {
				from++
			}
			continue
		}
		for ; found != nil; found = k.more(text[start:]) {
			from = start + found[1]
			if secret := text[start+found[2] : start+found[3]]; k.check == nil || k.check(secret) {
				fmt.Fprintf(&b, "%s[secret: %s, %d characters]", text[done:start+found[2]], k.name, utf8.RuneCountInString(secret))
				done = start + found[3]
			}
			start = from
		}
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// find matches the beginning of a text. A private key is what it is long: all that is looked at is in it.
func (k *kind) find(match *regexp.Regexp, text string) []int {
	if k.name != privateKey {
		text = text[:min(len(text), longest)]
	}
	return match.FindStringSubmatchIndex(text)
}

// more finds how a private key goes on.
func (k *kind) more(text string) []int {
	if k.name != privateKey {
		return nil
	}
	return k.find(keyGoesOn(), text)
}

// beginsWord reports whether no word goes on at a place: the letter of a JSON escape is none.
func beginsWord(text string, i int) bool {
	if i == 0 {
		return true
	}
	switch c := text[i-1]; {
	case c == 'n' || c == 'r' || c == 't':
		return i > 1 && text[i-2] == '\\'
	default:
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}
}

// inName reports whether a small letter or another byte is part of a name, as the kinds' matches have it.
func inName(c byte) bool { return c == '_' || c == '-' || c >= 'a' && c <= 'z' }

// lowerASCII is text with the same length in lower case.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// random reports whether a text looks like something that nobody would make up as an example: it has a
// letter and a digit, and is no word for a secret.
func random(text string) bool {
	return strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, unicode.IsLetter) && notBlank(text)
}

// pair reports whether a text is a name and a password, as HTTP's Basic has them.
func pair(text string) bool {
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && utf8.Valid(data) && bytes.IndexByte(data, ':') > 0 && notBlank(string(data))
}

// given reports whether a text is a value, and no name of one as help texts have it.
func given(text string) bool {
	name := strings.ToUpper(text) == text && !strings.ContainsAny(text, "0123456789")
	return !name && notBlank(text)
}

// blanks are words of examples, in lower case.
var blanks = []string{"your", "example", "placeholder", "redacted", "changeme", "change-me", "dummy", "xxx", "string", "value", "none", "null", "true", "false", "undefined", "..."}

// notBlank reports whether a text is not what is written where a secret was left out.
func notBlank(text string) bool {
	lower, seen := strings.ToLower(text), map[rune]bool{}
	for _, word := range blanks {
		if strings.Contains(lower, word) {
			return false
		}
	}
	for _, r := range lower {
		seen[r] = true
	}
	return len(seen) > 2 || len(lower) < 4
}
