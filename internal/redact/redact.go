// Package redact hides what is secret in the addresses of stores and providers. Secrets in texts are the matter of
// package secret.
package redact

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// hidden stands for a secret, as in url.URL.Redacted.
const hidden = "xxxxx"

// plain are the parameters whose values are shown. Nobody knows all that hold a secret.
var plain = []string{"user", "host", "port", "dbname", "sslmode", "api-version"}

// URL hides the password of an address, and the values of its parameters but a few that hold
// none. What is no URL stays as it is; one that cannot be parsed is hidden.
func URL(text string) string {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok || filepath.IsAbs(text) {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return scheme + "://…"
	}
	if _, has := u.User.Password(); !has && u.RawQuery == "" {
		return text // as it was written
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(plain, name) {
			query.Set(name, hidden)
		}
	}
	u.RawQuery = query.Encode()
	return u.Redacted()
}
