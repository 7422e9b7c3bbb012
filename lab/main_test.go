package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	const session = "../testdata/sessions/import-csv.openai-chat.json"
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := command()
		c.SetArgs(args)
		c.SetOut(&out)
		c.SetErr(&out)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, ok := range []struct {
		args []string
		want string
	}{
		{[]string{"estimators", session}, "claude, CJK"},
		{[]string{"locomo", "locomo/testdata/made.json", "--budgets", "50%"}, "2 with 7 questions"},
		{[]string{"estimators", session, "--json"}, `"estimator": "chars/4"`},
	} {
		if out, err := run(ok.args...); err != nil || !strings.Contains(out, ok.want) {
			t.Errorf("%q: %v, no %q in\n%s", ok.args, err, ok.want, out)
		}
	}
	for want, args := range map[string][]string{
		"chars/4 is an estimate itself":                             {"estimators", session, "--counter", "chars/4"},
		"not a LoCoMo file, a list of conversations with questions": {"locomo", session},
		"too short for 20 compactions":                              {"drift", session},
		"want dev, test or all":                                     {"drift", session, "--split", "half"},
		`no contender is called "x"`:                                {"peers", session, "--contender", "x"},
		"requires at least 1 arg":                                   {"learn"},
	} {
		if out, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
