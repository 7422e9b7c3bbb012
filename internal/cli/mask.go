package cli

import (
	"log/slog"

	"github.com/palimpsest-ai/palimpsest/internal/secret"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// settingsMask reports whether the settings have secrets masked in what leaves the machine.
func settingsMask() (bool, error) {
	c, err := loadSettings("", nil)
	return err == nil && c.Text("mask-secrets") == "on", err
}

// maskSession masks the secrets of a session that is written, and of its title, unless the settings say otherwise.
func maskSession(p *prompt.Prompt, title string) (masked string, notes []string, err error) {
	masks, err := settingsMask()
	if err != nil || !masks {
		return title, nil, err
	}
	made, n := secret.Prompt(*p)
	*p = made
	if n > 0 {
		notes = []string{maskedNote(n)}
	}
	return secret.Mask(title), notes, nil
}

// maskShown masks the secrets of a conversation that a page shows, unless the settings say otherwise, and returns
// how many messages had some.
func maskShown(in *web.Input) (int, error) {
	if masks, err := settingsMask(); err != nil || !masks {
		return 0, err
	}
	res := *in.Result
	sent, _ := secret.Prompt(*res.Prompt)
	res.Prompt = &sent
	messages, n := secret.Messages(in.Thread.Messages())
	log, err := thread.New(in.Thread.ID()).Append(messages...)
	if err != nil {
		return 0, err
	}
	in.Thread, in.Result, in.Title = log, &res, secret.Mask(in.Title)
	for i := range in.Side {
		in.Side[i].Title = secret.Mask(in.Side[i].Title)
	}
	return n, nil
}

// maskedNote says that secrets were masked.
func maskedNote(messages int) string {
	return "secrets in " + plural(messages, "message") + " are masked (PALIMPSEST_MASK_SECRETS=off shows them)"
}

// maskAttr masks the secrets of a log record.
func maskAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		return slog.String(a.Key, secret.Mask(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			return slog.String(a.Key, secret.Mask(err.Error()))
		}
	}
	return a
}
