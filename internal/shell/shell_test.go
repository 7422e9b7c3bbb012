package shell

import (
	"fmt"
	"strings"
	"testing"
)

// told is what was read of a line: the words of each command, what it writes, and the
// operator behind it.
func told(commands []Command) string {
	var b strings.Builder
	for i := range commands {
		c := &commands[i]
		fmt.Fprintf(&b, "%q", c.Plain())
		for _, w := range c.Writes {
			fmt.Fprintf(&b, " >%s", w.To)
		}
		if c.Document.Text != "" {
			fmt.Fprintf(&b, " <<%q", c.Document.Text)
		}
		b.WriteString(c.after)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for _, test := range [...]struct{ line, want string }{
		{"", ""},
		{"go test ./... && git push", `["go" "test" "./..."]&&["git" "push"]`},
		{`echo "a \"b\" c" 'd e' f\ g`, `["echo" "a \"b\" c" "d e" "f g"]`},
		{"make 2>&1 | tail -5 > out.txt", `["make"]|["tail" "-5"] >out.txt`},
		{"make &> log; ls 2>/dev/null", `["make"] >log;["ls"]`},
		{"cat <<'EOF' > a.md\nx > y\nEOF\nls", "[\"cat\"] >a.md <<\"x > y\\n\";[\"ls\"]"},
		{"git commit -m \"$(cat <<'EOF'\none (1)\nEOF\n)\"", `["git" "commit" "-m" "$(cat <<'EOF'\none (1)\nEOF\n)"]`},
		{"A=1 B=2 go test # why", `["go" "test"]`},
		{"for f in a b; do rm $f; done", `["rm" "$f"]`},
		{"(cd a && ls)", `["cd" "a"]&&["ls"]`},
		{"[[ -f a ]] && time make", `["[["]&&["make"]`},
		{"A=\"1 2\" B=$x\nexport C=3 >f", `["A=1 2" "B=$x"];["export"] >f`},
		{`echo "\a\$b" '\c' ${x}y`, `["echo" "\\a$b" "\\c" "${x}y"]`},
		{"a <<-'E' | b\n\t\tx $y\n\tE\n", "[\"a\"] <<\"\\t\\tx $y\\n\\t\"|[\"b\"]"},
		{"a <<\\E\nx \\$y\nE\nb <<E\nx \\$y\nE", "[\"a\"] <<\"x $y\\n\";[\"b\"] <<\"x $y\\n\""},
		{"git commit -m \"$(cat <<'EOF'\none\nEOF)\" && b", `["git" "commit" "-m" "$(cat <<'EOF'\none\nEOF\n)"]&&["b"]`},
		{"{ a; b; } >f && c", `[] >f;["a"];["b"]&&["c"]`},
		{"if a; then b; elif c; then d; else e; fi || g", `["a"];["b"];["c"];["d"];["e"]||["g"]`},
		{"! a && b | c &", `["a"]&&["b"]|["c"]&`},
		{"case x in a|b) c;; *) d; esac; f() { g; }; while h; do i; done", `["c"];["d"];["g"];["h"];["i"]`},
		{"echo 'open", `[""]`},
		{"echo $(open", `[""]`},
		{"cat <<EOF\nno end", "[\"cat\"] <<\"no end\\n\""},
	} {
		if got := told(Read(test.line)); got != test.want {
			t.Errorf("%q: %s; want %s", test.line, got, test.want)
		}
	}
}

// TestReport: what the status and the output of a line tell of each of its commands.
func TestReport(t *testing.T) {
	for line, want := range map[string]string{
		"a && b":                     "proved; proved undone perhaps",
		"a; b":                       "; proved blamed",
		"cd x && a":                  "proved; in x proved blamed alone",
		"a | tail -3":                "end piped; proved blamed",
		"a | head":                   "begin piped; proved blamed",
		"a | sort":                   "part piped; proved blamed",
		"a | grep FAIL":              "part piped; proved blamed",
		"a | tee f | tail -n 3":      "end piped; end piped; proved blamed",
		"a | head -n 4 | head -7; b": "begin piped; begin piped; ; proved blamed",
		"a | tail +3":                "part piped; proved blamed",
		"a | grep -E '^ok|FAIL'":     "part piped; proved blamed",
		"a | grep -v 'ok|FAIL'":      "part piped; proved blamed",
		"a > f":                      "hidden proved blamed alone",
		"a || b":                     "; perhaps",
		"a &":                        "hidden perhaps alone",
		"cd $X && a":                 "proved; in ? proved blamed alone",
		"cd /x; cd y; a; echo":       "; in /x; in /x/y alone; in /x/y proved",
		// What a failure ends, or may end, before its end.
		"set -e\na\nb":       "; perhaps; proved undone perhaps",
		"cd x; set -e; a; b": "; in x; in x perhaps; in x proved undone perhaps",
		"a || exit 1\nb":     "; perhaps; proved undone perhaps",
		"source v && a":      "proved; proved undone perhaps alone",
		"mkdir -p v && a":    "proved; proved blamed alone",
		// Where a command runs.
		"pushd x && a && popd && b; c": "; in x perhaps; in x perhaps; in ? perhaps; in ? proved blamed",
		"pushd /x; popd; popd; a":      "; in /x; in ?; in ? proved blamed alone",
		"cd x && a &\nb":               "hidden perhaps; in x hidden perhaps; proved blamed",
	} {
		commands := Read(line)
		var all []string
		for i := range commands {
			c := &commands[i]
			var says []string
			say := func(is bool, what string) {
				if is {
					says = append(says, what)
				}
			}
			say(c.Dir != "", "in "+c.Dir)
			say(c.Shown == EndShown, "end")
			say(c.Shown == BeginShown, "begin")
			say(c.Shown == PartShown, "part")
			say(c.Shown == NotShown, "hidden")
			say(c.Piped, "piped")
			say(c.Proved, "proved")
			say(c.Blamed, "blamed")
			say(c.Undone && !c.Blamed, "undone")
			say(c.Ran != RanSurely, "perhaps")
			say(c.Alone, "alone")
			all = append(all, strings.Join(says, " "))
		}
		if got := strings.Join(all, "; "); got != want {
			t.Errorf("%q: %s; want %s", line, got, want)
		}
	}
}

// FuzzRead: whatever a model writes as a command line, each command is read from it.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a && b || c; d | e & f 2>&1 >x <<EOF\nb\nEOF", `git commit -m "x$(y '"` + "`)`" + `'`, "$((", "cat <<-'E' | tee x\n\tE\n", "cd", ">", "a>", "<(", "<<<", "\\", "a <<", "&>", "a | <f", "a && <f; b", "for f in a b; do rm $f; done", "if a; then (cd b; c > d); fi; ! { e; } &", "cat <<A $(cat <<'B'\nb\nB)\na"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		commands := Read(line)
		for i := range commands {
			c := &commands[i]
			if len(c.Words) == 0 && len(c.Writes) == 0 {
				t.Errorf("%q: a command of nothing", line)
			}
			for word := range strings.FieldsSeq(c.Text) {
				if !strings.Contains(line, word) {
					t.Errorf("%q: %q is not in it", line, word)
				}
			}
			Unwrap(c.Plain())
		}
		for _, op := range Files(commands) {
			if op.Path == "" || op.By == nil {
				t.Errorf("%q: %+v", line, op)
			}
		}
	})
}
