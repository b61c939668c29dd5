package poddir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// bootRecord is the file, in the agent's folder, that says which boot of the machine the
// rest of the folder is from.
const bootRecord = "boot-id"

const bootRecordMode = 0o640

// WithdrawAfterReboot removes what was written down of containers before the machine
// booted: it says where volumes are mounted that aren't any more. It needs no API server,
// which may be away for long after a reboot, and comes before anything else. It can be
// repeated after any crash.
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
		return fmt.Errorf("withdrawing what containers were to see before the machine booted: %w", err)
	}
	return os.WriteFile(record, []byte(boot), bootRecordMode)
}
