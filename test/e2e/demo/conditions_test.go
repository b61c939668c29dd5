package demo_test

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// get reads an object of the namespace default, or of none, by its name.
func (s *scenario) get(name string, object client.Object) error {
	key := client.ObjectKey{Name: name}
	switch object.(type) {
	case *corev1.PersistentVolumeClaim, *corev1.Pod:
		key.Namespace = corev1.NamespaceDefault
	}
	return s.cluster.Client.Get(s.ctx, key, object)
}

func (s *scenario) claim(name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	s.do(func() error { return s.get(name, claim) })
	return claim
}

func (s *scenario) claimIsBound(name, volume string) condition {
	return func() error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := s.get(name, claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != volume {
			return fmt.Errorf("claim %s is %s, its volume is %q", name, claim.Status.Phase, claim.Spec.VolumeName)
		}
		return nil
	}
}

func (s *scenario) volumeIs(name string, phase corev1.PersistentVolumePhase) condition {
	return func() error {
		volume := &corev1.PersistentVolume{}
		if err := s.get(name, volume); err != nil {
			return err
		}
		if volume.Status.Phase != phase {
			return fmt.Errorf("volume %s is %s", name, volume.Status.Phase)
		}
		return nil
	}
}

func (s *scenario) isGone(name string, object client.Object) condition {
	return func() error {
		err := s.get(name, object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%s is there, its finalizers are %v", name, object.GetFinalizers())
	}
}

// backendIs holds if the backend's condition Ready has a status, and a message
// with a part.
func (s *scenario) backendIs(name string, want metav1.ConditionStatus, part string) condition {
	return func() error {
		backend := &stowagev1alpha1.StorageBackend{}
		if err := s.get(name, backend); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(backend.Status.Conditions, stowagev1alpha1.ReadyCondition)
		if ready == nil {
			return errors.New("it has no condition Ready")
		}
		if ready.Status != want {
			return fmt.Errorf("Ready is %s (%s): %s", ready.Status, ready.Reason, ready.Message)
		}
		return hasParts(ready.Message, []string{part})
	}
}

// claimSays holds if the claim is Pending and its condition Bindable is False
// with a message that has all parts; what it says is kept in said.
func (s *scenario) claimSays(name string, said *string, parts ...string) condition {
	return func() error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := s.get(name, claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimPending {
			return fmt.Errorf("claim %s is %s", name, claim.Status.Phase)
		}
		for _, c := range claim.Status.Conditions {
			if c.Type != stowagev1alpha1.BindableCondition {
				continue
			}
			*said = fmt.Sprintf("%s: %s", c.Reason, c.Message)
			if c.Status != corev1.ConditionFalse {
				return fmt.Errorf("Bindable is %s", c.Status)
			}
			return hasParts(*said, parts)
		}
		return errors.New("it has no condition " + stowagev1alpha1.BindableCondition)
	}
}

// eventTells holds if an event of the reason is about the claim.
func (s *scenario) eventTells(claim, reason string) condition {
	return func() error {
		events := &corev1.EventList{}
		if err := s.cluster.Client.List(s.ctx, events, client.InNamespace(corev1.NamespaceDefault)); err != nil {
			return err
		}
		var reasons []string
		for _, event := range events.Items {
			if event.InvolvedObject.Name != claim || event.InvolvedObject.Kind != "PersistentVolumeClaim" {
				continue
			}
			if event.Reason == reason {
				return nil
			}
			reasons = append(reasons, event.Reason)
		}
		return fmt.Errorf("events of claim %s: %v", claim, reasons)
	}
}

func hasParts(text string, parts []string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("it says %q, without %q", text, part)
		}
	}
	return nil
}
