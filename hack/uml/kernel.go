package uml

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Kernel is the name of the program that a guest is.
const Kernel = "linux.uml"

// Variable names the folder into which kernel.sh puts a kernel and its modules. Unset, or where nothing is there: guests run the
// machine's own. Guests have the variable, too.
const Variable = "STOWAGE_UML"

// machineModules are the modules of the machine's own kernel for guests.
const machineModules = "/usr/lib/uml/modules"

// kernel is the program that a guest is.
func kernel() string {
	if folder := os.Getenv(Variable); folder != "" {
		own := filepath.Join(folder, Kernel)
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	return Kernel
}

// modulesDir is where a guest finds those of the kernel that it runs, and which one needs which.
func modulesDir() (folder, dependencies string, err error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", "", err
	}
	var list []byte
	for _, all := range []string{filepath.Join(MachineDir, os.Getenv(Variable), "modules"), machineModules} {
		folder = filepath.Join(all, unix.ByteSliceToString(name.Release[:]))
		if list, err = os.ReadFile(filepath.Join(folder, "modules.dep")); err == nil {
			break
		}
	}
	return folder, string(list), err
}

// NFSv4 is the module of the NFSv4 client, for LoadModules. That of Linux 7.2 asks servers to delegate directories: with
// NFS-Ganesha 4.3, a question for a directory's attributes would then fail with "remote I/O error". Older ones ignore the parameter.
const NFSv4 = "nfsv4 directory_delegations=0"
