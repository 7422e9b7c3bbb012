//go:build linux || darwin

package cli

import (
	"os"
	"syscall"
	"unsafe"
)

// columnsOf is how many columns a terminal has; 0 if it does not say.
func columnsOf(terminal *os.File) int {
	var size struct{ rows, columns, x, y uint16 }
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size))); errno != 0 {
		return 0
	}
	return int(size.columns)
}
