package llm

import (
	"errors"
	"strings"
)

// Attempt is a model that was asked, and its failure; nil if it answered.
type Attempt struct {
	Model string
	Err   error
}

// AttemptsError says that each of several models failed. errors.Is and errors.As
// see all of the failures.
type AttemptsError struct{ Attempts []Attempt }

// Error names each model with its failure.
func (e *AttemptsError) Error() string {
	texts := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		texts[i] = a.Model + ": " + a.Err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the failures.
func (e *AttemptsError) Unwrap() []error {
	errs := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		errs[i] = a.Err
	}
	return errs
}

// AttemptsOf returns the models that were asked, for an error of asking model: those that the
// error names, or only that model.
func AttemptsOf(model string, err error) []Attempt {
	if all, ok := errors.AsType[*AttemptsError](err); ok {
		return all.Attempts
	}
	return []Attempt{{model, err}}
}

// RepeatedError is an earlier failure of the same question; the model was not asked again.
type RepeatedError struct{ Err error }

// Error says that the model was not asked again.
func (e *RepeatedError) Error() string { return "not asked again after: " + e.Err.Error() }

// Unwrap returns the failure.
func (e *RepeatedError) Unwrap() error { return e.Err }
