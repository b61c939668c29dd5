// Package kubectltest runs verbs of kubectl stowage against objects in memory. Only tests
// use it.
package kubectltest

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
)

// Now is the time of every run.
var Now = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// Output is what a verb printed.
type Output struct{ Out, Err string }

// Client has the objects, and knows events by what they are about, and by the kind of that.
func Client(objects ...client.Object) client.WithWatch {
	scheme, err := cluster.Scheme()
	if err != nil {
		panic(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(object client.Object) []string {
			event, _ := object.(*corev1.Event)
			return []string{string(event.InvolvedObject.UID)}
		}).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(object client.Object) []string {
			event, _ := object.(*corev1.Event)
			return []string{event.InvolvedObject.Kind}
		}).Build()
}

// Run runs a verb with arguments, such as "pod db -o json", and the namespace default.
func Run(ctx context.Context, verb func(*cluster.Cluster) *cobra.Command, arguments string, with client.Client) (Output, error) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	c := cluster.New(streams)
	*c.Flags.Namespace = metav1.NamespaceDefault
	c.Clock = clocktesting.NewFakePassiveClock(Now)
	c.Open = func() (client.Client, error) { return with, nil }
	command := verb(c)
	c.AddFlags(command.PersistentFlags())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(strings.Fields(arguments))
	err := command.ExecuteContext(ctx)
	return Output{Out: out.String(), Err: errOut.String()}, err
}
