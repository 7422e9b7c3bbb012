//go:build unix

package pgtest

import (
	"os/exec"
	"syscall"
)

// start makes a command run as the owner.
func (o *owner) start(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}}
}
