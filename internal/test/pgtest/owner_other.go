//go:build !unix

package pgtest

import "os/exec"

// start has nothing to do: only Unix has the root as whom a server refuses to run.
func (*owner) start(*exec.Cmd) {}
