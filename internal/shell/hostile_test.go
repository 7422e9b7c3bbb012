package shell

import (
	"strings"
	"testing"
)

// TestHostile: whatever a line repeats, it is read or not: then one command at the end says so.
func TestHostile(t *testing.T) {
	for unit, unread := range map[string]bool{
		"(": true, "((": true, "$(": true, "{ ": true, "if ": true, "while ": true, "until ": true, "case a in a) ": true, "for i in a; do ": true, "f() { ": true,
		"\"$(": true, "<(": true, "${a:-": true, "$((": true, "a[": true, "((a?(": true, "[[ ( ": true, "if a; then ": true, "!(": true, "a=(": true,
		"a|": true, "a&&": true, "a||": true, "a;": true, "a\n": true, "a & ": true, "! a; ": true, "<<x": true, "<<x\n": false, "<a ": false, ">a ": true, "<<<a ": false,
		"'": false, "\"": false, "`": false, "\\": false, "a='": false, "$a": false, "$'": false, "time ": false, "#": false, "\r": false, "\x00": false, "\xff": true,
		"( ')))'; ": true, "((\"))\"+": true,
	} {
		line := strings.Repeat(unit, 20_000/len(unit))
		commands := Read(line)
		if got := len(commands) > 0 && commands[len(commands)-1].Unread(); got != unread {
			t.Errorf("%q: unread %t, %d commands", unit, got, len(commands))
		}
		Files(commands)
	}
}

// TestNesting: what only looks like deep nesting is read.
func TestNesting(t *testing.T) {
	for name, line := range map[string]string{
		"a program":  "python3 - <<'EOF'\n" + strings.Repeat("if x:\n    for y in z:\n        print(y)\n", 200) + "EOF\n",
		"a text":     "cat > a.md <<EOF\n" + strings.Repeat("if it rains, or\nfor a while\n", 200) + "EOF",
		"lists":      "cat > a.el <<'EOF'\n" + strings.Repeat("((a b) c)\n", 400) + "EOF",
		"one by one": strings.Repeat("if a; then (b); fi; for i in 1; do { c; }; done\n", 10), "100 levels": strings.Repeat("(", 60) + "a" + strings.Repeat(")", 60),
	} {
		commands := Read(line)
		if len(commands) == 0 || commands[len(commands)-1].Unread() {
			t.Errorf("%s is not read", name)
		}
	}
	for _, line := range []string{"echo " + strings.Repeat("((\"))\"+", 600), strings.Repeat("( ", 101) + "a" + strings.Repeat(")", 101), strings.Repeat("if ", 1001) + "a" + strings.Repeat("; then b; fi", 1001)} {
		if commands := Read(line); len(commands) != 1 || !commands[0].Unread() {
			t.Errorf("%.20q is read: %d commands", line, len(commands))
		}
	}
}
