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

// verdictOf reads a line of output; deep says that it is indented.
func verdictOf(line string, deep bool) (verdictLine, bool) {
	v := verdictLine{text: line}
	bad := func(by runner, rank uint8) (verdictLine, bool) {
		v.by, v.rank, v.sum = by, rank, rank == 2
		return v, true
	}
	good := func(by runner, rank uint8) (verdictLine, bool) {
		v.by, v.rank, v.good, v.sum = by, rank, true, true
		return v, true
	}
	count := func(by runner, failed int) (verdictLine, bool) {
		if failed > 0 {
			return bad(by, 2)
		}
		return good(by, 2)
	}
	if len(line) < 2 || len(line) > 400 {
		return v, false
	}
	has := func(s string) bool { return strings.Contains(line, s) }
	begins := func(s string) bool { return strings.HasPrefix(line, s) }
	switch line[0] {
	case '-':
		if begins("--- FAIL:") {
			v.weak = deep
			return bad(goRunner, 3)
		}
	case '=':
		if n, ok := pytestLine(strings.Trim(line, "= ")); ok {
			return count(pythonRunner, n)
		}
	case '#':
		if n, ok := after(line, "# fail "); ok {
			if n == 0 {
				return v, false // there is a line with what passed
			}
			return bad(scriptRunner, 2)
		}
		if n, ok := after(line, "# pass "); ok && n > 0 {
			v.by, v.good, v.rank = scriptRunner, true, 2
			return v, true
		}
	case '[':
		if begins("[ERROR] ") && (has("FAIL") || has("COMPILATION ERROR") || has("Tests run:")) {
			return bad(mavenRunner, 2)
		}
		if begins("[INFO] BUILD SUCCESS") {
			return good(mavenRunner, 1)
		}
		if begins("[INFO] BUILD FAILURE") {
			return bad(mavenRunner, 1)
		}
		if i := strings.Index(line, "] ERROR task failed"); i > 0 && !strings.Contains(line[:i], " ") {
			return bad(miseRunner, 1)
		}
	case 'F':
		switch {
		case line == "FAIL":
			v.weak = deep
			return bad(goRunner, 1)
		case begins("FAIL\t"):
			v.weak = deep
			return bad(goRunner, 2)
		case begins("FAIL "), begins("FAILED tests/"), begins("FAILED ") && has("::"):
			if begins("FAILED ") {
				return bad(pythonRunner, 3)
			}
			return bad(scriptRunner, 3)
		case begins("FAILED (failures="), begins("FAILED (errors="):
			return bad(pythonRunner, 2)
		case begins("FAILURES!"):
			return bad(phpRunner, 1)
		case begins("FAILURE: Build failed"):
			return bad(gradleRunner, 2)
		case begins("Found ") && (has(" error") || has(" fixable")):
			if n, ok := after(line, "Found "); ok {
				return count(tscRunner|ruffRunner|mypyRunner|biomeRunner, n)
			}
		case begins("Failed!  - Failed:"):
			return bad(dotnetRunner, 2)
		}
	case 'o':
		if begins("ok  \t") {
			v.by, v.good, v.rank, v.sum = goRunner, true, 2, true
			return v, true
		}
	case 'O':
		switch {
		case line == "OK", begins("OK (skipped="):
			return good(pythonRunner, 1)
		case begins("OK ("):
			return good(phpRunner, 2)
		}
	case 'P':
		switch {
		case line == "PASS":
			v.by, v.good, v.rank = goRunner, true, 1
			return v, true
		case begins("Passed!  - Failed:"):
			return good(dotnetRunner, 2)
		}
	case 'p':
		if begins("panic: ") {
			v.weak = true
			return bad(goRunner, 3)
		}
	case 't':
		if begins("test result: ok.") {
			v.by, v.good, v.rank, v.sum = cargoRunner, true, 2, true
			return v, true
		}
		if begins("test result: FAILED.") {
			return bad(cargoRunner, 2)
		}
		if begins("test ") && strings.HasSuffix(line, " ... FAILED") {
			return bad(cargoRunner, 3)
		}
	case 'e':
		if begins("error[E") || begins("error: could not compile") || begins("error: test failed") || begins("error: aborting due to") {
			return bad(cargoRunner, 3)
		}
		if begins("error TS") {
			return bad(tscRunner, 3)
		}
	case 'T':
		if n, ok := jestLine(line); ok {
			return count(scriptRunner, n)
		}
		if begins("Tests: ") && has("Assertions: ") {
			if has("Failures:") || has("Errors:") {
				return bad(phpRunner, 2)
			}
		}
		if begins("Test Suites: ") {
			return v, false
		}
	case 'S':
		if begins("Success: no issues found in ") {
			return good(mypyRunner, 2)
		}
	case 'A':
		if begins("All checks passed!") {
			return good(ruffRunner, 2)
		}
		if begins("All matched files use Prettier code style!") {
			return good(prettierRunner, 2)
		}
		if begins("All done!") {
			return good(blackRunner, 1)
		}
	case 'B':
		switch {
		case begins("BUILD SUCCESSFUL"):
			return good(gradleRunner, 1)
		case begins("BUILD FAILED"):
			return bad(gradleRunner, 1)
		case begins("Build succeeded."):
			return good(dotnetRunner, 1)
		case begins("Build FAILED."):
			return bad(dotnetRunner, 1)
		case begins("Build complete!"):
			return good(swiftRunner, 1)
		}
	case 'E':
		if begins("Executed ") && has(" tests, with ") {
			_, rest, _ := strings.Cut(line, " tests, with ")
			if n, ok := after(rest, ""); ok {
				return count(swiftRunner, n)
			}
		}
		if begins("Executed ") && has(" test") && has(" out of ") {
			if has(" fail") {
				return bad(bazelRunner, 2)
			}
		}
		if begins("ERROR: Build did NOT complete") {
			return bad(bazelRunner, 2)
		}
	case 'I':
		if begins("INFO: Build completed successfully") {
			return good(bazelRunner, 2)
		}
	case 'm':
		if begins("make: *** ") || begins("make[") && has("]: *** ") {
			return bad(makeRunner, 2)
		}
	case 'n':
		if begins("npm ERR! ") || begins("npm error ") {
			return bad(npmRunner, 1)
		}
	case '*':
		if begins("** BUILD SUCCEEDED **") || begins("** TEST SUCCEEDED **") {
			return good(swiftRunner, 1)
		}
		if begins("** BUILD FAILED **") || begins("** TEST FAILED **") {
			return bad(swiftRunner, 1)
		}
	case 'C':
		if begins("Code style issues found in ") {
			return bad(prettierRunner, 2)
		}
		if begins("Checked ") && (has(" files in ") || has(" file in ")) {
			v.by, v.good, v.rank = biomeRunner, true, 2
			return v, true
		}
	case 0xe2:
		if begins("✖ ") && has(" problem") {
			_, rest, _ := strings.Cut(line, "(")
			if n, ok := after(rest, ""); ok && n > 0 {
				return bad(eslintRunner, 2)
			}
		}
	}
	if i := strings.Index(line, ".go:"); i > 0 && !deep && strings.IndexByte(line[:i], ' ') < 0 {
		row, rest, _ := strings.Cut(line[i+4:], ":")
		column, _, ok := strings.Cut(rest, ": ")
		if ok && isNumber(row) && isNumber(column) {
			return bad(compileRunner|golangciRunner, 3)
		}
	}
	switch {
	case has("): error TS"), has(" - error TS"):
		return bad(tscRunner, 3)
	case line[0] >= '0' && line[0] <= '9':
		return counted(line, v)
	}
	return v, false
}

// counted reads verdicts that begin with a number.
func counted(line string, v verdictLine) (verdictLine, bool) {
	n, _ := after(line, "")
	rest := strings.TrimLeft(line, "0123456789")
	v.rank, v.sum = 2, true
	switch {
	case rest == " issues." || rest == " issues:" || rest == " issue:":
		v.by, v.good = golangciRunner, n == 0
	case rest == " passing" || strings.HasPrefix(rest, " passing ("):
		v.by, v.good, v.sum = scriptRunner, true, false
	case rest == " failing":
		if n == 0 {
			return v, false
		}
		v.by = scriptRunner
	case rest == " pass":
		v.by, v.good, v.sum = scriptRunner, true, false
	case rest == " fail":
		if n == 0 {
			return v, false
		}
		v.by = scriptRunner
	case strings.Contains(rest, " examples, ") || strings.HasPrefix(rest, " example, "):
		_, f, _ := strings.Cut(rest, ", ")
		m, ok := after(f, "")
		if !ok || !strings.Contains(f, "failure") {
			return v, false
		}
		v.by, v.good = rspecRunner, m == 0
	case strings.HasPrefix(rest, " runs, ") && strings.Contains(rest, " assertions, "):
		v.by, v.good = railsRunner, strings.Contains(rest, ", 0 failures, 0 errors")
	case strings.HasSuffix(rest, "would be reformatted.") || strings.HasSuffix(rest, " would be reformatted"):
		v.by = blackRunner | ruffRunner
	default:
		failed, ok := pytestLine(line)
		if !ok {
			return v, false
		}
		v.by, v.good = pythonRunner, failed == 0
	}
	return v, true
}

// after reads the number behind a prefix.
func after(line, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return 0, false
	}
	n, digits := 0, 0
	for digits < len(rest) && digits < 9 && charClass[rest[digits]] == digit {
		n = n*10 + int(rest[digits]-'0')
		digits++
	}
	return n, digits > 0
}

// pytestLine reads "1 failed, 2 passed in 0.12s": how many failed.
func pytestLine(line string) (int, bool) {
	head, took, ok := strings.Cut(line, " in ")
	if !ok || !strings.Contains(head, " passed") && !strings.Contains(head, " failed") && !strings.Contains(head, " error") || len(took) == 0 || charClass[took[0]] != digit {
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

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
