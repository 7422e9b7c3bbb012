package recall

import (
	"testing"
	"time"
)

// TestPeriodOf: which days a question names, seen from a day of 2025; words that are names of months
// only by chance name none.
func TestPeriodOf(t *testing.T) {
	now := time.Date(2025, time.April, 21, 19, 45, 0, 0, time.UTC)
	for query, want := range map[string][2]string{
		"what did we decide on 3 March?":             {"2025-03-03", "2025-03-04"},
		"what broke on March 3rd, 2024":              {"2024-03-03", "2024-03-04"},
		"the outage of 2024-11-30":                   {"2024-11-30", "2024-12-01"},
		"Which trips were there in May 2023?":        {"2023-05-01", "2023-06-01"},
		"who joined in December":                     {"2024-12-01", "2025-01-01"},
		"what was said yesterday":                    {"2025-04-20", "2025-04-21"},
		"Was haben wir letzte Woche entschieden?":    {"2025-04-07", "2025-04-17"},
		"was war am 2. März 2025":                    {"2025-03-02", "2025-03-03"},
		"the invoice of January 2022 and of May":     {"2022-01-01", "2022-02-01"},
		"what may break if we march on to release 3": {},
		"what did I decide about retries":            {},
		"which layer of the player renders Ahoy":     {},
		"yesterday’s plan":                           {"2025-04-20", "2025-04-21"},
		"qu'est-ce qu'on a dit aujourd'hui ?":        {"2025-04-21", "2025-04-22"},
		"":                                           {},
	} {
		p, ok := periodOf(query, now)
		got := [2]string{}
		if ok {
			got = [2]string{p.from.Format(time.DateOnly), p.until.Format(time.DateOnly)}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	p, _ := periodOf("on 3 March", now)
	if on, near, far := p.nearness(p.from), p.nearness(p.from.AddDate(0, 0, -3)), p.nearness(p.from.AddDate(0, 1, 0)); on != 1 || near <= 0 || near >= 1 || far != 0 || p.nearness(time.Time{}) != 0 {
		t.Errorf("on the day %v, near it %v, far from it %v", on, near, far)
	}
}

// TestStem: forms of one word have one stem, other words another one, and what is no plain word stays.
func TestStem(t *testing.T) {
	for want, forms := range map[string][]string{
		"decid":    {"decide", "decided", "decides", "deciding"},
		"retri":    {"retry", "retries", "retried"},
		"hope":     {"hope", "hoped", "hoping", "hopes"},
		"hop":      {"hop", "hopped", "hopping"},
		"buy":      {"buy", "buys", "bought"},
		"child":    {"child", "children"},
		"adopt":    {"adopt", "adoption", "adopted"},
		"relat":    {"relate", "relational", "relation"},
		"control":  {"control", "controlled", "controlling"},
		"agr":      {"agree", "agreed"},
		"focus":    {"focus", "focused", "focusing"},
		"v1.2.3":   {"v1.2.3"},
		"größe":    {"größe"},
		"is":       {"is"},
		"m4ngled_": {"m4ngled_"},
		"ошибк":    {"ошибка", "ошибки", "ошибку", "ошибками"},
	} {
		for _, form := range forms {
			if got := stem(form); got != want {
				t.Errorf("%s: %s, want %s", form, got, want)
			}
		}
	}
}
