package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/kubenode"
	"github.com/stowage-dev/stowage/test/story"
)

// system is Stowage's own namespace.
const system = "stowage-system"

// install installs Stowage as users do, and gives it storage.
func (b *bed) install() {
	s := b.story
	soon := func(what string, try func() error) {
		s.Do(what, func() error { return story.Within(s.Ctx, patience, try) })
	}
	s.Chapter("Stowage, from config/" + b.overlay)
	s.Do("it is installed, with what README has people type", b.deploy)
	soon("the Deployment of managers is Ready", b.managersAreReady)
	soon("the DaemonSet of node agents is Ready on all nodes", b.agentsAreReady)
	soon("the kubelets have registered the drivers", func() error { return b.Each(b.hasDrivers) })
	s.Do("a StorageBackend is made of each kind", b.createBackends)
	soon("all are Ready", b.backendsAreReady)
}

// deploy installs Stowage as README says. It ends when all programs are Ready.
func (b *bed) deploy() error {
	install, _, err := quickStart()
	if err == nil {
		_, err = b.types(b.story.Ctx, install)
	}
	return err
}

// manifests is what is installed.
func (b *bed) manifests() (string, error) {
	folder := filepath.Join(apiserver.Repository(), "test", "e2e", "manifests", b.overlay)
	return run(b.story.Ctx, "", filepath.Join(apiserver.Repository(), "bin", "kustomize"), "build", folder)
}

func (b *bed) apply() error {
	all, err := b.manifests()
	if err == nil {
		_, err = b.kubectl(b.story.Ctx, all, "apply", "--server-side", "--filename=-")
	}
	return err
}

func (b *bed) managersAreReady() error {
	manager := &appsv1.Deployment{}
	err := b.Client.Get(b.story.Ctx, client.ObjectKey{Namespace: system, Name: "stowage-manager"}, manager)
	status := manager.Status
	if err == nil && (status.ObservedGeneration < manager.Generation || status.UpdatedReplicas < *manager.Spec.Replicas ||
		status.AvailableReplicas != *manager.Spec.Replicas) {
		err = fmt.Errorf("of %d managers %d are Ready: %+v", *manager.Spec.Replicas, status.ReadyReplicas, status.Conditions)
	}
	return err
}

func (b *bed) agentsAreReady() error {
	agents := &appsv1.DaemonSet{}
	err := b.Client.Get(b.story.Ctx, client.ObjectKey{Namespace: system, Name: "stowage-node-agent"}, agents)
	status := agents.Status
	if err == nil && (status.ObservedGeneration < agents.Generation || status.UpdatedNumberScheduled < int32(len(b.Nodes)) ||
		status.NumberReady != int32(len(b.Nodes))) {
		err = fmt.Errorf("agents are Ready on %d of %d nodes", status.NumberReady, len(b.Nodes))
	}
	return err
}

// hasDrivers says whether the scheduler knows that a node has the drivers.
func (b *bed) hasDrivers(node *kubenode.Node) error {
	known := &storagev1.CSINode{}
	if err := b.Client.Get(b.story.Ctx, client.ObjectKey{Name: node.Name}, known); err != nil {
		return err
	}
	for _, driver := range []string{stowagev1alpha1.NFSDriver, stowagev1alpha1.LocalDriver, stowagev1alpha1.GCEDriver} {
		has := func(one storagev1.CSINodeDriver) bool { return one.Name == driver }
		if !slices.ContainsFunc(known.Spec.Drivers, has) {
			return fmt.Errorf("%s has no driver %s", node.Name, driver)
		}
	}
	return nil
}

// createBackends makes one of each kind; their classes have their names.
func (b *bed) createBackends() error {
	var problems []error
	for _, backend := range b.backends() {
		problems = append(problems, b.Client.Create(b.story.Ctx, backend))
	}
	return errors.Join(problems...)
}

func (b *bed) backendsAreReady() error {
	all := &stowagev1alpha1.StorageBackendList{}
	if err := b.Client.List(b.story.Ctx, all); err != nil {
		return err
	}
	for _, backend := range all.Items {
		ready := meta.FindStatusCondition(backend.Status.Conditions, stowagev1alpha1.ReadyCondition)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("backend %s isn't Ready: %+v", backend.Name, backend.Status.Conditions)
		}
	}
	return b.Each(b.knowsDisks)
}

// knowsDisks says whether each local backend knows the disk of a node.
func (b *bed) knowsDisks(node *kubenode.Node) error {
	disks := &stowagev1alpha1.LocalDiskList{}
	if err := b.Client.List(b.story.Ctx, disks); err != nil {
		return err
	}
	known := 0
	for _, disk := range disks.Items {
		if disk.Spec.NodeName == node.Name && disk.Status.Available != nil {
			known++
		}
	}
	if known < 2 {
		return fmt.Errorf("%d disks of %s are known", known, node.Name)
	}
	return nil
}
