package main

import "testing"

func TestRun(t *testing.T) {
	if report, err := run(t.Context(), false); err == nil {
		t.Errorf("without Palimpsest the window does not overflow: %v", report)
	}
	report, err := run(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Found() || report.Refused > 0 || report.Lookups == 0 {
		t.Error(report)
	}
}
