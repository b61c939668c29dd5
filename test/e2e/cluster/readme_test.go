package cluster_test

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// readme: README's commands, typed in a stock cluster, have a pod write to a volume.
func readme(n *namespace) {
	scenario.Step("README's quick start works, as it is typed", func() error {
		_, use, err := kube.QuickStart()
		if err != nil {
			return err
		}
		output, err := n.cluster.Type(n.ctx, use)
		if err == nil && !strings.Contains(output, " UTC ") {
			err = fmt.Errorf("it doesn't end with the date that the pod wrote:\n%s", output)
		}
		return err
	})
	scenario.Step("what it made goes, with the data", func() error {
		at := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: data}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: at}
		volume, err := n.volume(claim)
		at.Name = "writer"
		return errors.Join(err, n.remove(&corev1.Pod{ObjectMeta: at}, claim), n.gone(volume), n.backendGoes("local"))
	})
}

func (n *namespace) backendGoes(name string) error {
	made := &stowagev1alpha1.StorageBackend{}
	made.Name = name
	return n.remove(made)
}
