package safepath

import (
	"os"

	"golang.org/x/sys/unix"
)

// specialBits are the bits of a mode that package os has elsewhere.
var specialBits = map[uint32]os.FileMode{unix.S_ISUID: os.ModeSetuid, unix.S_ISGID: os.ModeSetgid, unix.S_ISVTX: os.ModeSticky}

// FileMode is a mode as package os has it, from the kernel's bits.
func FileMode(bits uint32) os.FileMode {
	mode := os.FileMode(bits) & os.ModePerm
	for bit, special := range specialBits {
		if bits&bit != 0 {
			mode |= special
		}
	}
	return mode
}

// ModeBits is the kernel's bits of a mode.
func ModeBits(mode os.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for bit, special := range specialBits {
		if mode&special != 0 {
			bits |= bit
		}
	}
	return bits
}
