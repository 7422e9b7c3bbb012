package work

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// verdictLine is a line in which a runner says how a check went.
type verdictLine struct {
	text  string
	by    runner
	good  bool
	rank  uint8  // how much it says: 3 names what failed, 2 counts, 1 is a bare word
	whole bool   // it sums up all of a run
	weak  bool   // a program that works may print it too
	task  string // the task of mise that it is of; empty for any
	// tally says that good depends on the figures in the line.
	tally bool
}

func failed(by runner, rank uint8) verdictLine {
	return verdictLine{by: by, rank: rank, whole: rank == 2}
}

func passed(by runner, rank uint8) verdictLine {
	return verdictLine{by: by, rank: rank, good: true, whole: true}
}

// verdictForm recognizes a verdict by its beginning and other parts. A newline at the end of
// either matches the end of the line.
type verdictForm struct {
	begins string
	says   verdictLine
	holds  []string
}

// digits matches any digit at the beginning of a line.
const digits = "0"

// verdicts lists the forms by their first byte. The first that fits counts.
var verdicts = func() (t [256][]verdictForm) {
	// tally is good if it counts no failures.
	tally := func(by runner) verdictLine { return verdictLine{by: by, rank: 2, whole: true, tally: true} }
	some := func(by runner, rank uint8) verdictLine { return verdictLine{by: by, rank: rank, good: true} } // of a part of the run
	for _, v := range []verdictForm{
		{"--- FAIL:", failed(goRunner, 3), nil}, {"FAIL\n", failed(goRunner, 1), nil}, {"FAIL\t", failed(goRunner, 2), nil},
		{"ok  \t", passed(goRunner, 2), nil}, {"PASS\n", some(goRunner, 1), nil}, {"panic: ", failed(goRunner, 3), nil},
		{"FAIL ", failed(scriptRunner, 3), nil}, {"Tests:", tally(scriptRunner), []string{" total"}}, {"Tests  ", tally(scriptRunner), []string{")\n"}},
		{"# pass ", some(scriptRunner, 2), nil}, {"# fail 0", verdictLine{good: true}, nil}, {"# fail ", failed(scriptRunner, 2), nil},
		{digits, some(scriptRunner, 2), []string{" passing\n"}}, {digits, some(scriptRunner, 2), []string{" pass\n"}}, {digits, some(scriptRunner, 2), []string{" passing ("}},
		{digits, tally(scriptRunner), []string{" failing\n"}}, {digits, tally(scriptRunner), []string{" fail\n"}},
		{"FAILED tests/", failed(pythonRunner, 3), nil}, {"FAILED ", failed(pythonRunner, 3), []string{"::"}},
		{"FAILED (failures=", failed(pythonRunner, 2), nil}, {"FAILED (errors=", failed(pythonRunner, 2), nil},
		{"OK\n", passed(pythonRunner, 1), nil}, {"OK (skipped=", passed(pythonRunner, 1), nil},
		{"OK (", passed(phpRunner, 2), nil}, {"FAILURES!", failed(phpRunner, 1), nil},
		{"Tests: ", failed(phpRunner, 2), []string{"Assertions: ", "Failures:"}}, {"Tests: ", failed(phpRunner, 2), []string{"Assertions: ", "Errors:"}},
		{"test result: ok.", passed(cargoTestRunner, 2), nil}, {"test result: FAILED.", failed(cargoTestRunner, 2), nil},
		{"test ", failed(cargoTestRunner, 3), []string{" ... FAILED\n"}}, {"error[E", failed(cargoRunner, 3), nil},
		{"error: could not compile", failed(cargoRunner, 3), nil}, {"error: test failed", failed(cargoTestRunner, 3), nil},
		{"error: aborting due to", failed(cargoRunner, 3), nil}, {"error TS", failed(tscRunner, 3), nil},
		{"Found ", tally(tscRunner | ruffRunner | mypyRunner | biomeRunner), []string{" error"}}, {"✖ ", tally(eslintRunner), []string{" problem"}},
		{"[ERROR] ", failed(mavenRunner, 2), []string{"FAIL"}}, {"[ERROR] ", failed(mavenRunner, 2), []string{"COMPILATION ERROR"}},
		{"[ERROR] ", failed(mavenRunner, 2), []string{"Tests run:"}},
		{"[INFO] BUILD SUCCESS", passed(mavenRunner, 1), nil}, {"[INFO] BUILD FAILURE", failed(mavenRunner, 1), nil},
		{"BUILD SUCCESSFUL", passed(gradleRunner, 1), nil}, {"BUILD FAILED", failed(gradleRunner, 1), nil},
		{"FAILURE: Build failed", failed(gradleRunner, 2), nil},
		{"Passed!  - Failed:", passed(dotnetTestRunner, 2), nil}, {"Failed!  - Failed:", failed(dotnetTestRunner, 2), nil},
		{"Build succeeded.", passed(dotnetRunner, 1), nil}, {"Build FAILED.", failed(dotnetRunner, 1), nil},
		{"Build complete!", passed(swiftRunner, 1), nil}, {"Executed ", tally(swiftTestRunner), []string{" tests, with "}},
		{"** BUILD SUCCEEDED **", passed(swiftRunner, 1), nil}, {"** TEST SUCCEEDED **", passed(swiftTestRunner, 1), nil},
		{"** BUILD FAILED **", failed(swiftRunner, 1), nil}, {"** TEST FAILED **", failed(swiftTestRunner, 1), nil},
		{digits, tally(golangciRunner), []string{" issues.\n"}}, {digits, tally(golangciRunner), []string{" issues:\n"}}, {digits, tally(golangciRunner), []string{" issue:\n"}},
		{digits, tally(rspecRunner), []string{" example", ", ", " failure"}}, {digits, tally(railsRunner), []string{" runs, ", " assertions, "}},
		{"Executed ", failed(bazelRunner, 2), []string{" test", " out of ", " fail"}},
		{"ERROR: Build did NOT complete", failed(bazelRunner, 2), nil}, {"INFO: Build completed successfully", passed(bazelRunner, 2), nil},
		{"Success: no issues found in ", passed(mypyRunner, 2), nil}, {"All checks passed!", passed(ruffRunner, 2), nil},
		{"All matched files use Prettier code style!", passed(prettierRunner, 2), nil}, {"Code style issues found in ", failed(prettierRunner, 2), nil},
		{"All done!", passed(blackRunner, 1), nil},
		{digits, failed(blackRunner|ruffFormatRunner, 2), []string{"would be reformatted.\n"}}, {digits, failed(blackRunner|ruffFormatRunner, 2), []string{" would be reformatted\n"}},
		{"Checked ", some(biomeRunner, 2), []string{" files in "}}, {"Checked ", some(biomeRunner, 2), []string{" file in "}},
		{"make: *** ", failed(makeRunner, 2), nil}, {"make[", failed(makeRunner, 2), []string{"]: *** "}},
		{"npm ERR! ", failed(npmRunner, 1), nil}, {"npm error ", failed(npmRunner, 1), nil},
		{"[", failed(miseRunner, 1), []string{"] ERROR task failed"}},
	} {
		for c := v.begins[0]; c == v.begins[0] || v.begins == digits && c <= '9'; c++ {
			t[c] = append(t[c], v)
		}
	}
	return t
}()

// fits reports whether a line has the form.
func (v *verdictForm) fits(line string) bool {
	if whole, is := strings.CutSuffix(v.begins, "\n"); is && line != whole || !is && v.begins != digits && !strings.HasPrefix(line, v.begins) {
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
	v, ok := timed(line)
	for _, form := range verdicts[line[0]] {
		if ok {
			break
		}
		if ok = form.fits(line); !ok {
			continue
		}
		if v = form.says; v.tally {
			n, counted := failures(line)
			v.good, ok = n == 0, counted > 0
		}
		v.weak = !v.good && v.by == goRunner && (deep || line[0] == 'p')
	}
	if !ok {
		v, ok = finished(line)
	}
	if !ok {
		v, ok = located(line, deep)
	}
	v.text = line
	return v, ok
}

// finished reads the line of mise for a task that succeeded, after those that it depends on:
// "[lint] Finished in 3.0ms". It prints none for a task that failed.
func finished(line string) (verdictLine, bool) {
	task, took, ok := strings.Cut(strings.TrimPrefix(line, "["), "] Finished in ")
	if !ok || line[0] != '[' || took == "" || !scan.IsDigit(took[0]) {
		return verdictLine{}, false
	}
	switch strings.TrimLeft(took, "0123456789.") {
	case "s", "ms", "µs":
		v := passed(miseRunner, 1)
		v.task = task
		return v, true
	}
	return verdictLine{}, false
}

// located reads verdicts that begin with the name of a file.
func located(line string, deep bool) (verdictLine, bool) {
	if i := strings.Index(line, ".go:"); i > 0 && !deep && strings.IndexByte(line[:i], ' ') < 0 {
		row, rest, _ := strings.Cut(line[i+4:], ":")
		column, _, ok := strings.Cut(rest, ": ")
		if ok && scan.IsNumber(row) && scan.IsNumber(column) {
			return failed(compileRunner|golangciRunner, 3), true
		}
	}
	return failed(tscRunner, 3), strings.Contains(line, "): error TS") || strings.Contains(line, " - error TS")
}

// timed reads the tally of pytest: "1 failed, 2 passed in 0.12s", with a frame or
// without.
func timed(line string) (verdictLine, bool) {
	if line[0] != '=' && !scan.IsDigit(line[0]) {
		return verdictLine{}, false
	}
	head, took, ok := strings.Cut(strings.Trim(line, "= "), " in ")
	if !ok || took == "" || !scan.IsDigit(took[0]) {
		return verdictLine{}, false
	}
	n, counted := failures(head)
	if counted != strings.Count(head, ", ")+1 {
		return verdictLine{}, false
	}
	if n > 0 {
		return failed(pythonRunner, 2), true
	}
	return passed(pythonRunner, 2), strings.Contains(head, " passed") || strings.Contains(head, " error")
}

// tallied are the words after the figures of a tally; true ones are failures.
var tallied = scan.Inverted(map[bool]string{
	true:  "failed failing fail failure failures error errors issue issues",
	false: "passed passing skipped deselected xfailed xpassed warning warnings rerun example examples runs tests total",
})

// failures adds up the failures of a tally and counts its figures.
func failures(line string) (n, figures int) {
	number, is := 0, false
	for word := range strings.FieldsSeq(line) {
		bad, known := tallied[strings.Trim(word, ".:,()|")]
		if is && known {
			figures++
			if bad {
				n += number
			}
		}
		number, is = scan.NumberAfter(strings.TrimLeft(word, "("), "")
	}
	return n, figures
}
