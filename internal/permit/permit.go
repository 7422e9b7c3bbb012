// Package permit has the key for what only code of this module may use. Others
// cannot import the package, and cannot write the key down.
package permit

// Key is an argument of methods that hand out what must not be written to.
type Key struct{ _ struct{} }
