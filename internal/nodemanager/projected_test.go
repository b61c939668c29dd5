package nodemanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
)

var (
	errDown    = errors.New("connection refused")
	errMissing = fmt.Errorf("configMap default/settings is %w", content.ErrMissing)
)

func TestAProjectedVolumeIsRefreshedOnlyIfItsContentChanged(t *testing.T) {
	s := newProjecting(t, fromConfigMap())
	s.settle(t)
	if s.board() != "one" || s.boards.refreshes != 0 || s.ready(t) != "Ready" {
		t.Fatalf("it shows %s after %d refreshes, and is %s", s.board(), s.boards.refreshes, s.ready(t))
	}

	s.source.value = "two"
	s.settle(t)

	if s.board() != "two" || s.boards.refreshes != 1 {
		t.Errorf("it shows %s after %d refreshes", s.board(), s.boards.refreshes)
	}
	if recorded := s.recorded(); len(recorded) != 0 {
		t.Errorf("recorded: %q", recorded)
	}
}

func TestAProjectedVolumeIsRefreshedWhenThePodsLabelsChange(t *testing.T) {
	s := newProjecting(t, corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "key", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['color']"}},
	}}})
	s.settle(t)
	pod := &corev1.Pod{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, pod); err != nil {
		t.Fatal(err)
	}
	pod.Labels = map[string]string{"color": "blue"}
	if err := s.api.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	s.settle(t)
	if s.board() != "blue" {
		t.Errorf("it shows %s", s.board())
	}
}

func TestAChangeDuringAMountIsRefreshedAfterwards(t *testing.T) {
	s := newProjecting(t, fromConfigMap())
	s.boards.held = make(chan struct{})
	if _, err := s.Reconcile(t.Context(), nodetest.SomePod); err != nil {
		t.Fatal(err)
	}
	s.source.value = "two"
	if _, err := s.Reconcile(t.Context(), nodetest.SomePod); err != nil {
		t.Fatal(err)
	}
	close(s.boards.held)
	s.operations.Wait()
	s.settle(t)
	if s.board() != "two" {
		t.Errorf("it shows %s", s.board())
	}
}

func TestAChangeDuringARestartIsRefreshedAfterwards(t *testing.T) {
	s := newProjecting(t, fromConfigMap())
	s.settle(t)
	s.source.value = "two"

	s.restart(s.Tree)
	s.settle(t)

	if s.board() != "two" || s.boards.refreshes != 1 {
		t.Errorf("it shows %s after %d refreshes", s.board(), s.boards.refreshes)
	}
}

func TestTheContentOfAMissingObjectStaysAndIsReportedOnce(t *testing.T) {
	for name, cause := range map[string]error{"an object that was deleted": errMissing, "an API server that is down": errDown} {
		t.Run(name, func(t *testing.T) {
			s := newProjecting(t, fromConfigMap())
			s.settle(t)
			s.recorded()
			s.restart(s.Tree)
			s.source.err = cause

			again := s.settle(t)

			if s.board() != "one" || s.boards.refreshes != 0 || s.ready(t) != "Ready" || again != staleInterval {
				t.Errorf("it shows %s after %d refreshes, is %s, and is looked at again after %s", s.board(), s.boards.refreshes, s.ready(t), again)
			}
			if recorded := s.recorded(); len(recorded) != 1 || !strings.Contains(recorded[0], "FailedMount volume board keeps its earlier content: ") {
				t.Errorf("recorded: %q", recorded)
			}
			deletePod(t, s)
			s.settle(t)
			if s.board() != "nothing" {
				t.Error("the pod can't be torn down")
			}
		})
	}
}

func TestAFailedRefreshIsRetriedAndReportedOnceEachTime(t *testing.T) {
	s := newProjecting(t, fromConfigMap())
	s.settle(t)
	s.recorded()
	for _, value := range []string{"two", "three"} {
		s.source.value, s.boards.err = value, errors.New("no space left on device")
		for range 3 {
			s.clock.Step(s.settle(t))
		}
		if recorded := s.recorded(); len(recorded) != 1 || !strings.Contains(recorded[0], "no space left") || s.ready(t) != "Ready" {
			t.Errorf("recorded: %q, and it is %s", recorded, s.ready(t))
		}

		s.boards.err = nil
		s.clock.Step(operations.LastRetry)
		s.settle(t)

		if s.board() != value {
			t.Errorf("it shows %s", s.board())
		}
	}
}

func TestAnInterruptedRefreshIsRepeatedThoughTheOldFilesAreBack(t *testing.T) {
	s := newProjecting(t, fromConfigMap())
	s.settle(t)
	s.source.value, s.boards.err = "two", errors.New("cut off")
	s.settle(t)
	s.source.value, s.boards.err = "one", nil
	refreshes := s.boards.refreshes
	s.clock.Step(operations.LastRetry)

	s.settle(t)

	if s.boards.refreshes != refreshes+1 {
		t.Error("its content was not refreshed")
	}
}

func TestAPodWaitsForItsProjectedObjects(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "settings", errors.New("no relationship found"))
	tests := map[string]struct {
		cause  error
		reason string
		events int
	}{
		"missing":             {errMissing, "FailedMount", 1},
		"not readable yet":    {fmt.Errorf("%w: %w", errMissing, forbidden), "Pending", 0},
		"the API server down": {errDown, "FailedMount", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newProjecting(t, fromConfigMap())
			s.source.err = test.cause
			again := s.settle(t)
			if s.board() != "nothing" || s.ready(t) != test.reason || again == 0 || again > podstatus.LastClaimWait {
				t.Errorf("it shows %s, is %s, and is looked at again after %s", s.board(), s.ready(t), again)
			}
			if recorded := s.recorded(); len(recorded) != test.events {
				t.Errorf("recorded: %q", recorded)
			}
			s.source.err = nil
			s.settle(t)
			if s.board() != "one" {
				t.Errorf("it shows %s", s.board())
			}
		})
	}
}

func TestAPodIsReconciledWhenItsTokenIsToBeRenewed(t *testing.T) {
	s := newProjecting(t, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "key"}},
	}}})
	if again := s.settle(t); again != time.Hour {
		t.Errorf("it is looked at after %s", again)
	}
}

func TestTheObjectsOfAPodAreForgottenOnceItNeedsThemNoMore(t *testing.T) {
	s := newProjecting(t, fromConfigMap())
	s.settle(t)
	if len(s.source.forgotten) != 0 {
		t.Error("it was forgotten while it was shown")
	}
	deletePod(t, s)
	s.settle(t)
	if !slices.Contains(s.source.forgotten, nodetest.SomePod) {
		t.Error("it wasn't forgotten")
	}
}

func deletePod(t *testing.T, s *projecting) {
	t.Helper()
	if err := s.api.Delete(t.Context(), nodetest.PodOnNode(nodetest.SomePod)); err != nil {
		t.Fatal(err)
	}
}
