package poddir

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

// WithdrawContainers removes the descriptions of a pod's containers.
func (t Tree) WithdrawContainers(uid types.UID) error {
	return t.eachContainer(uid, container.Withdraw)
}

// RemoveContainers removes the descriptions and the directories of a pod's containers.
func (t Tree) RemoveContainers(uid types.UID) error {
	return t.eachContainer(uid, container.Remove)
}

func (t Tree) eachContainer(uid types.UID, do func(dir string) error) error {
	names, err := t.list(t.containersDir(uid))
	if err != nil {
		return fmt.Errorf("listing the pod's containers: %w", err)
	}
	var problems []error
	for _, name := range names {
		problems = append(problems, do(t.ContainerDir(uid, name)))
	}
	return errors.Join(problems...)
}
