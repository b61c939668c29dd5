package poddir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// bootRecord is the file in the agent's folder with the boot ID of the rest of the folder.
const bootRecord = "boot-id"

const bootRecordMode = 0o640

// WithdrawAfterReboot removes the descriptions of containers from before the machine booted:
// their volumes aren't mounted any more. It comes before anything else, and needs no API
// server, which may be down for long after a reboot. It can be repeated after any crash.
func (t Tree) WithdrawAfterReboot(boot string) error {
	record := filepath.Join(t.root, bootRecord)
	if written, err := os.ReadFile(record); err == nil && string(written) == boot {
		return nil
	}
	pods, err := t.Pods()
	if err != nil {
		return err
	}
	var problems []error
	for _, pod := range pods {
		problems = append(problems, t.WithdrawContainers(pod))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("withdrawing the descriptions of containers from before the machine booted: %w", err)
	}
	return os.WriteFile(record, []byte(boot), bootRecordMode)
}
