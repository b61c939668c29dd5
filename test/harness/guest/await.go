package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// Create creates objects.
func (s *Stowage) Create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := s.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes objects, and waits until they are gone.
func (s *Stowage) Delete(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := s.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return s.AwaitGone(ctx, objects...)
}

// AwaitGone waits until objects are gone.
func (s *Stowage) AwaitGone(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		err := scenario.Eventually(ctx, func() error {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("%T %s is there: %s", object, object.GetName(), s.EventsOf(ctx, object.GetName()))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// AwaitBound waits until a claim is bound.
func (s *Stowage) AwaitBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	return scenario.Eventually(ctx, func() error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s: %+v", claim.Name, claim.Status.Phase, claim.Status.Conditions)
		}
		return nil
	})
}

// AwaitMounted waits until all volumes of pods are mounted.
func (s *Stowage) AwaitMounted(ctx context.Context, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		if err := scenario.Eventually(ctx, func() error { return s.isMounted(ctx, pod) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stowage) isMounted(ctx context.Context, pod *corev1.Pod) error {
	status, message, err := s.VolumesReady(ctx, pod)
	if err == nil && status != corev1.ConditionTrue {
		err = fmt.Errorf("the volumes of pod %s aren't ready: %q", pod.Name, message)
	}
	return err
}

// VolumesReady is what a pod's condition says of its volumes.
func (s *Stowage) VolumesReady(ctx context.Context, pod *corev1.Pod) (corev1.ConditionStatus, string, error) {
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return "", "", err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == stowagev1alpha1.VolumesReadyCondition {
			return condition.Status, condition.Message, nil
		}
	}
	return "", "", nil
}

// AwaitEvent waits for an event about an object, by its name, with a reason and text.
func (s *Stowage) AwaitEvent(ctx context.Context, about, reason, text string) error {
	return scenario.Eventually(ctx, func() error {
		all := s.EventsOf(ctx, about)
		for event := range strings.Lines(all) {
			if strings.HasPrefix(event, reason) && strings.Contains(event, text) {
				return nil
			}
		}
		return errors.New("the events of " + about + " are: " + all)
	})
}

// EventsOf returns an object's events, one a line.
func (s *Stowage) EventsOf(ctx context.Context, name string) string {
	events := &corev1.EventList{}
	if err := s.Client.List(ctx, events, client.InNamespace(corev1.NamespaceDefault)); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for i := range events.Items {
		if event := &events.Items[i]; event.InvolvedObject.Name == name {
			fmt.Fprintf(&text, "%s: %s\n", event.Reason, strings.ReplaceAll(event.Message, "\n", " "))
		}
	}
	return text.String()
}
