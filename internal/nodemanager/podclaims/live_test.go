package podclaims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const node = "n1"

// server is an API server that has pods of the node. Each read takes a while, and returns what there was at its begin.
type server struct {
	client.Reader
	pods        []corev1.Pod
	takes       time.Duration
	err         error
	listErr     error
	gets, lists atomic.Int32
}

func (s *server) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.gets.Add(1)
	pods := s.begin()
	<-time.After(s.takes)
	for i := range pods {
		if client.ObjectKeyFromObject(&pods[i]) == key {
			pods[i].DeepCopyInto(object.(*corev1.Pod))
			return s.err
		}
	}
	return errors.Join(s.err, apierrors.NewNotFound(corev1.Resource("pods"), key.Name))
}

func (s *server) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.lists.Add(1)
	pods := s.begin()
	<-time.After(s.takes)
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if on, _ := asked.FieldSelector.RequiresExactMatch("spec.nodeName"); on != node {
		return fmt.Errorf("a node may not list pods of %q", on)
	}
	list.(*corev1.PodList).Items = pods
	return errors.Join(s.err, s.listErr)
}

func (s *server) begin() []corev1.Pod {
	return (&corev1.PodList{Items: s.pods}).DeepCopy().Items
}

// mustHaveRead checks how many requests there were, of each kind.
func (s *server) mustHaveRead(t *testing.T, gets, lists int32) {
	t.Helper()
	if s.gets.Load() != gets || s.lists.Load() != lists {
		t.Errorf("pods were read %d times, and listed %d times; wanted %d and %d", s.gets.Load(), s.lists.Load(), gets, lists)
	}
}

func manyPods(count int) []corev1.Pod {
	pods := make([]corev1.Pod, count)
	for i := range pods {
		pods[i] = *Pod(fmt.Sprint("pod-", i), node)
		pods[i].UID = types.UID(fmt.Sprint("uid-", i))
	}
	return pods
}

// findAll finds all pods at once, and returns what was found, or why not.
func findAll(t *testing.T, live *Live, cached []corev1.Pod) []*corev1.Pod {
	t.Helper()
	found := make([]*corev1.Pod, len(cached))
	var running sync.WaitGroup
	for i := range cached {
		running.Go(func() {
			var err error
			if found[i], err = live.Find(t.Context(), cached[i].UID, &cached[i]); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	return found
}

func TestAPodThatGoesAloneIsReadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(3), takes: time.Millisecond}
		live := NewLive(api, node)
		for range 2 {
			if pod := findAll(t, live, api.pods[1:2])[0]; pod == nil || pod.UID != "uid-1" {
				t.Errorf("found %v", pod)
			}
		}
		api.mustHaveRead(t, 2, 0)
	})
}

func TestPodsThatGoAtOnceShareLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(100), takes: 5 * time.Millisecond}
		for i, pod := range findAll(t, NewLive(api, node), api.pods) {
			if pod == nil || pod.UID != api.pods[i].UID {
				t.Errorf("instead of %s, found %v", api.pods[i].UID, pod)
			}
		}
		if api.gets.Load() != 1 || api.lists.Load() > 2 {
			t.Errorf("%d reads and %d lists", api.gets.Load(), api.lists.Load())
		}
	})
}

func TestAPodWhoseContainerRunsSinceAListBeganIsSeenToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(3), takes: 5 * time.Millisecond}
		cached, live := manyPods(3), NewLive(api, node)
		var before sync.WaitGroup
		before.Go(func() { findAll(t, live, cached[:2]) })
		synctest.Wait()

		api.pods[2].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		if pod := findAll(t, live, cached[2:])[0]; pod == nil || !NeedsVolumes(pod) {
			t.Errorf("found %v", pod)
		}
		before.Wait()
		api.mustHaveRead(t, 1, 2)
	})
}

func TestAPodThatAListLacksIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(1), takes: 5 * time.Millisecond}
		gone := manyPods(3)
		gone[0].UID = "an earlier pod of this name"
		live := NewLive(api, node)
		for i, pod := range append(findAll(t, live, gone), findAll(t, live, gone[:1])...) {
			if pod != nil {
				t.Errorf("pod %d is found: %v", i, pod)
			}
		}
		if pod, err := live.Find(t.Context(), "uid-0", nil); pod == nil || err != nil {
			t.Errorf("a pod that the cache lacks is %v (%v)", pod, err)
		}
	})
}

func TestAListThatFailsSaysNothingOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		api := &server{pods: manyPods(2), takes: 5 * time.Millisecond, err: down}
		live := NewLive(api, node)
		for _, cached := range []*corev1.Pod{nil, &api.pods[1]} {
			pod, err := live.Find(t.Context(), "uid-1", cached)
			if !errors.Is(err, down) || pod != nil || !strings.Contains(err.Error(), "uid-1") {
				t.Errorf("found %v (%v)", pod, err)
			}
		}
	})
}

// An object that the API server can't decode fails a list of all pods, and not the read of another one.
func TestAPodIsReadAloneIfAListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(10), takes: 5 * time.Millisecond, listErr: errors.New("unable to decode")}
		for i, pod := range findAll(t, NewLive(api, node), api.pods) {
			if pod == nil || pod.UID != api.pods[i].UID {
				t.Errorf("instead of %s, found %v", api.pods[i].UID, pod)
			}
		}
	})
}

// A list may be slow because of another tenant's pods, or an API server that has no cache for it.
func TestASlowListIsNotSharedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(10), takes: slowList + 1}
		live := NewLive(api, node)
		findAll(t, live, api.pods)
		slow := api.lists.Load()
		findAll(t, live, api.pods)
		api.mustHaveRead(t, 11, slow)

		<-time.After(unsharedFor)
		findAll(t, live, api.pods)
		if api.lists.Load() == slow {
			t.Error("lists are never shared again")
		}
	})
}

func TestWhatACallFindsIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{pods: manyPods(1), takes: 5 * time.Millisecond}
		same := slices.Repeat(api.pods, 10)
		found := map[*corev1.Pod]bool{}
		for _, pod := range findAll(t, NewLive(api, node), same) {
			found[pod] = true
		}
		if len(found) != len(same) {
			t.Errorf("%d calls share a pod", len(same))
		}
	})
}
