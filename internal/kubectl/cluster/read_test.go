package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
)

// answering is a cluster whose reads are answered by funcs, and its notes.
func answering(funcs interceptor.Funcs) (*cluster.Cluster, fmt.Stringer) {
	streams, _, _, notes := genericiooptions.NewTestIOStreams()
	c := cluster.New(streams)
	c.Open = func() (client.Client, error) { return interceptor.NewClient(kubectltest.Client(), funcs), nil }
	return c, notes
}

func TestAListIsReadInPagesUpToItsBound(t *testing.T) {
	served := 0
	c, notes := answering(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		asked := client.ListOptions{}
		asked.ApplyOptions(options)
		pods, _ := list.(*corev1.PodList)
		for range asked.Limit {
			served++
			pods.Items = append(pods.Items, corev1.Pod{})
		}
		pods.Continue = fmt.Sprint(served)
		if served > 500 && asked.Continue != "500" {
			return fmt.Errorf("asked to continue at %q", asked.Continue)
		}
		return nil
	}})
	c.MostObjects = 900
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods); err != nil || len(pods.Items) != 900 || served != 900 {
		t.Errorf("%v: %d pods of %d", err, len(pods.Items), served)
	}
	if !strings.Contains(notes.String(), "only the first 900 Pod objects were read: raise --max-objects") {
		t.Errorf("noted %q", notes)
	}
}

func TestWhatMayNotBeReadIsNoted(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	c, notes := answering(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	})
	if err := c.List(t.Context(), &corev1.PodList{}); err != nil || !strings.Contains(notes.String(), "Pod objects are left out: you may not list them") {
		t.Errorf("%v: %q", err, notes)
	}
	if presence, err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, &corev1.Pod{}); presence != cluster.Unreadable || err != nil {
		t.Error(presence, err)
	}
}

func TestAKindThatTheClusterDoesNotServeHasNoObjects(t *testing.T) {
	unknown := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Pod"}}
	c, notes := answering(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return unknown },
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unknown
		},
	})
	if err := c.List(t.Context(), &corev1.PodList{}); err != nil || notes.String() != "" {
		t.Errorf("%v: %q", err, notes)
	}
	if presence, err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, &corev1.Pod{}); presence != cluster.Absent || err != nil {
		t.Error(presence, err)
	}
}
