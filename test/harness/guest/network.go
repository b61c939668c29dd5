package guest

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Address is where nodes reach what runs beside them. No other address of its network is in use.
const Address = "10.99.0.1"

func tapOf(n int) string     { return "tap" + strconv.Itoa(n) }
func gatewayOf(n int) string { return fmt.Sprintf("10.99.%d.1", n) }

func addressOf(n int) string {
	if n == 0 {
		return Address
	}
	return fmt.Sprintf("10.99.%d.2", n)
}

// prepare makes a machine of this process's namespaces: places to write to, and a
// network with one address.
func prepare(ctx context.Context, folder Folder) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the machine's mounts: %w", err)
	}
	for target, kind := range map[string]string{"/proc": "proc", "/run": "tmpfs", folder.Memory(): "tmpfs"} {
		if err := unix.Mount(kind, target, kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	return Commands(ctx, "ip link set lo up", "ip address add "+Address+"/32 dev lo")
}

func link(ctx context.Context, n int) error {
	tap := tapOf(n)
	return Commands(ctx, "ip tuntap add dev "+tap+" mode tap", "ip address add "+gatewayOf(n)+"/24 dev "+tap, "ip link set "+tap+" up")
}

// Commands runs commands, whose words have no spaces.
func Commands(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		words := strings.Fields(command)
		if output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	return nil
}
