package summarize

import "strings"

// verdictLine is a line with which a runner says how a check went.
type verdictLine struct {
	text string
	by   runner
	good bool
	rank uint8 // how much it says: 3 names what failed, 2 counts, 1 is a bare word
	sum  bool  // it sums up all of a run
	weak bool  // a program that works may print it too
}

func failed(by runner, rank uint8) verdictLine {
	return verdictLine{by: by, rank: rank, sum: rank == 2}
}

func passed(by runner, rank uint8) verdictLine {
	return verdictLine{by: by, rank: rank, good: true, sum: true}
}

// verdictForm is how a line begins that says how a check went, and what else stands in
// it. A newline at the end of either asks for the end of the line.
type verdictForm struct {
	begins string
	says   verdictLine
	holds  []string
}

// verdicts lists them by their first byte. The first that fits counts.
var verdicts = func() (t [256][]verdictForm) {
	some := verdictLine{rank: 2, good: true} // of a part of the run
	word := verdictLine{by: goRunner, rank: 1, good: true}
	by := func(v verdictLine, by runner) verdictLine { v.by = by; return v }
	for _, v := range []verdictForm{
		{"--- FAIL:", failed(goRunner, 3), nil}, {"FAIL\n", failed(goRunner, 1), nil}, {"FAIL\t", failed(goRunner, 2), nil},
		{"ok  \t", passed(goRunner, 2), nil}, {"PASS\n", word, nil}, {"panic: ", failed(goRunner, 3), nil},
		{"FAIL ", failed(scriptRunner, 3), nil},
		{"FAILED tests/", failed(pythonRunner, 3), nil}, {"FAILED ", failed(pythonRunner, 3), []string{"::"}},
		{"FAILED (failures=", failed(pythonRunner, 2), nil}, {"FAILED (errors=", failed(pythonRunner, 2), nil},
		{"OK\n", passed(pythonRunner, 1), nil}, {"OK (skipped=", passed(pythonRunner, 1), nil},
		{"OK (", passed(phpRunner, 2), nil}, {"FAILURES!", failed(phpRunner, 1), nil},
		{"Tests: ", failed(phpRunner, 2), []string{"Assertions: ", "Failures:"}}, {"Tests: ", failed(phpRunner, 2), []string{"Assertions: ", "Errors:"}},
		{"test result: ok.", passed(cargoRunner, 2), nil}, {"test result: FAILED.", failed(cargoRunner, 2), nil},
		{"test ", failed(cargoRunner, 3), []string{" ... FAILED\n"}}, {"error[E", failed(cargoRunner, 3), nil},
		{"error: could not compile", failed(cargoRunner, 3), nil}, {"error: test failed", failed(cargoRunner, 3), nil},
		{"error: aborting due to", failed(cargoRunner, 3), nil}, {"error TS", failed(tscRunner, 3), nil},
		{"[ERROR] ", failed(mavenRunner, 2), []string{"FAIL"}}, {"[ERROR] ", failed(mavenRunner, 2), []string{"COMPILATION ERROR"}},
		{"[ERROR] ", failed(mavenRunner, 2), []string{"Tests run:"}},
		{"[INFO] BUILD SUCCESS", passed(mavenRunner, 1), nil}, {"[INFO] BUILD FAILURE", failed(mavenRunner, 1), nil},
		{"BUILD SUCCESSFUL", passed(gradleRunner, 1), nil}, {"BUILD FAILED", failed(gradleRunner, 1), nil},
		{"FAILURE: Build failed", failed(gradleRunner, 2), nil},
		{"Passed!  - Failed:", passed(dotnetRunner, 2), nil}, {"Failed!  - Failed:", failed(dotnetRunner, 2), nil},
		{"Build succeeded.", passed(dotnetRunner, 1), nil}, {"Build FAILED.", failed(dotnetRunner, 1), nil},
		{"Build complete!", passed(swiftRunner, 1), nil},
		{"** BUILD SUCCEEDED **", passed(swiftRunner, 1), nil}, {"** TEST SUCCEEDED **", passed(swiftRunner, 1), nil},
		{"** BUILD FAILED **", failed(swiftRunner, 1), nil}, {"** TEST FAILED **", failed(swiftRunner, 1), nil},
		{"Executed ", failed(bazelRunner, 2), []string{" test", " out of ", " fail"}},
		{"ERROR: Build did NOT complete", failed(bazelRunner, 2), nil}, {"INFO: Build completed successfully", passed(bazelRunner, 2), nil},
		{"Success: no issues found in ", passed(mypyRunner, 2), nil}, {"All checks passed!", passed(ruffRunner, 2), nil},
		{"All matched files use Prettier code style!", passed(prettierRunner, 2), nil}, {"Code style issues found in ", failed(prettierRunner, 2), nil},
		{"All done!", passed(blackRunner, 1), nil},
		{"Checked ", by(some, biomeRunner), []string{" files in "}}, {"Checked ", by(some, biomeRunner), []string{" file in "}},
		{"make: *** ", failed(makeRunner, 2), nil}, {"make[", failed(makeRunner, 2), []string{"]: *** "}},
		{"npm ERR! ", failed(npmRunner, 1), nil}, {"npm error ", failed(npmRunner, 1), nil},
	} {
		t[v.begins[0]] = append(t[v.begins[0]], v)
	}
	return t
}()

// fits reports whether a line is one that says this.
func (v *verdictForm) fits(line string) bool {
	if whole, is := strings.CutSuffix(v.begins, "\n"); is && line != whole || !is && !strings.HasPrefix(line, v.begins) {
		return false
	}
	for _, part := range v.holds {
		if end, is := strings.CutSuffix(part, "\n"); is && !strings.HasSuffix(line, end) || !is && !strings.Contains(line, part) {
			return false
		}
	}
	return true
}

// verdictOf reads a line of output; deep says that it is indented.
func verdictOf(line string, deep bool) (verdictLine, bool) {
	if len(line) < 2 || len(line) > 400 {
		return verdictLine{}, false
	}
	v, ok := counted(line)
	list := verdicts[line[0]]
	for i := 0; i < len(list) && !ok; i++ {
		if ok = list[i].fits(line); ok {
			v = list[i].says
			v.weak = !v.good && v.by == goRunner && (deep || line[0] == 'p')
		}
	}
	if !ok {
		v, ok = located(line, deep)
	}
	v.text = line
	return v, ok
}

// located reads verdicts that begin with the name of a file or of a task.
func located(line string, deep bool) (verdictLine, bool) {
	if i := strings.Index(line, "] ERROR task failed"); i > 0 && line[0] == '[' && !strings.Contains(line[:i], " ") {
		return failed(miseRunner, 1), true
	}
	if i := strings.Index(line, ".go:"); i > 0 && !deep && strings.IndexByte(line[:i], ' ') < 0 {
		row, rest, _ := strings.Cut(line[i+4:], ":")
		column, _, ok := strings.Cut(rest, ": ")
		if ok && isNumber(row) && isNumber(column) {
			return failed(compileRunner|golangciRunner, 3), true
		}
	}
	return failed(tscRunner, 3), strings.Contains(line, "): error TS") || strings.Contains(line, " - error TS")
}

// counted reads verdicts that say how many failed or passed.
func counted(line string) (verdictLine, bool) {
	count := func(by runner, failures int, ok bool) (verdictLine, bool) {
		if failures > 0 {
			return failed(by, 2), ok
		}
		return passed(by, 2), ok
	}
	failures := func(by runner, n int) (verdictLine, bool) { return failed(by, 2), n > 0 }
	some := verdictLine{by: scriptRunner, good: true, rank: 2} // others may have failed
	switch c := line[0]; {
	case c == '=':
		n, ok := pytestLine(strings.Trim(line, "= "))
		return count(pythonRunner, n, ok)
	case c == '#':
		if n, ok := after(line, "# pass "); ok {
			return some, n > 0
		}
		n, _ := after(line, "# fail ")
		return failures(scriptRunner, n)
	case c == 'F':
		n, ok := after(line, "Found ")
		return count(tscRunner|ruffRunner|mypyRunner|biomeRunner, n, ok && (strings.Contains(line, " error") || strings.Contains(line, " fixable")))
	case c == 'T':
		n, ok := jestLine(line)
		return count(scriptRunner, n, ok)
	case c == 'E':
		_, rest, _ := strings.Cut(line, " tests, with ")
		n, ok := after(rest, "")
		return count(swiftRunner, n, ok && strings.HasPrefix(line, "Executed "))
	case strings.HasPrefix(line, "✖ ") && strings.Contains(line, " problem"):
		_, rest, _ := strings.Cut(line, "(")
		n, _ := after(rest, "")
		return failures(eslintRunner, n)
	case !isDigit(c):
		return verdictLine{}, false
	}
	n, _ := after(line, "")
	rest := strings.TrimLeft(line, "0123456789")
	switch {
	case rest == " issues." || rest == " issues:" || rest == " issue:":
		return count(golangciRunner, n, true)
	case rest == " passing" || rest == " pass" || strings.HasPrefix(rest, " passing ("):
		return some, true
	case rest == " failing" || rest == " fail":
		return failures(scriptRunner, n)
	case strings.Contains(rest, " examples, ") || strings.HasPrefix(rest, " example, "):
		_, f, _ := strings.Cut(rest, ", ")
		m, ok := after(f, "")
		return count(rspecRunner, m, ok && strings.Contains(f, "failure"))
	case strings.HasPrefix(rest, " runs, ") && strings.Contains(rest, " assertions, "):
		if strings.Contains(rest, ", 0 failures, 0 errors") {
			return passed(railsRunner, 2), true
		}
		return failed(railsRunner, 2), true
	case strings.HasSuffix(rest, "would be reformatted.") || strings.HasSuffix(rest, " would be reformatted"):
		return failed(blackRunner|ruffRunner, 2), true
	}
	m, ok := pytestLine(line)
	return count(pythonRunner, m, ok)
}

// pytestLine reads "1 failed, 2 passed in 0.12s": how many failed.
func pytestLine(line string) (int, bool) {
	head, took, ok := strings.Cut(line, " in ")
	if !ok || !strings.Contains(head, " passed") && !strings.Contains(head, " failed") && !strings.Contains(head, " error") || len(took) == 0 || !isDigit(took[0]) {
		return 0, false
	}
	failed := 0
	for part := range strings.SplitSeq(head, ", ") {
		n, what, ok := strings.Cut(part, " ")
		if !ok {
			return 0, false
		}
		count, ok := after(n, "")
		if !ok {
			return 0, false
		}
		switch what {
		case "failed", "error", "errors":
			failed += count
		case "passed", "skipped", "deselected", "xfailed", "xpassed", "warning", "warnings", "rerun":
		default:
			return 0, false
		}
	}
	return failed, true
}

// jestLine reads "Tests:  1 failed, 2 passed, 3 total" and "Tests  1 failed | 2
// passed (3)": how many failed.
func jestLine(line string) (int, bool) {
	rest, ok := strings.CutPrefix(line, "Tests:")
	if !ok {
		if rest, ok = strings.CutPrefix(line, "Tests  "); !ok {
			return 0, false
		}
	}
	rest = strings.TrimSpace(rest)
	if !strings.Contains(rest, " passed") && !strings.Contains(rest, " failed") || !strings.Contains(rest, " total") && !strings.HasSuffix(rest, ")") {
		return 0, false
	}
	if i := strings.Index(rest, " failed"); i > 0 {
		return after(rest[strings.LastIndexAny(rest[:i], " |,")+1:], "")
	}
	return 0, true
}
