package redact_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/redact"
)

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://me:CANARY@db/p?sslmode=require":                    "postgres://me:xxxxx@db/p?sslmode=require",
		"postgres://db/p?user=me&password=CANARY&sslpassword=CANARY":   "postgres://db/p?password=xxxxx&sslpassword=xxxxx&user=me",
		"https://gateway.example/v1?api_key=CANARY&api-version=2024-1": "https://gateway.example/v1?api-version=2024-1&api_key=xxxxx",
		"https://me:CANARY@gateway.example":                            "https://me:xxxxx@gateway.example",
		"https://gateway.example?a=CANARY;b=CANARY":                    "https://gateway.example",
		"postgres://me:CANARY@db:port\x7f/x":                           "postgres://…",
		"sqlite:palimpsest.db":                                         "sqlite:palimpsest.db",
		"http://":                                                      "http://",
		"":                                                             "",
	} {
		if got := redact.URL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
