package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// specLabel is on the namespaces of specs.
const specLabel = "stowage.dev/e2e"

// namespace is where a spec works: the cluster that all specs share, and a namespace that
// is the spec's alone and goes with it.
type namespace struct {
	ctx     context.Context
	cluster *kube.Cluster
	name    string
}

// part is what a spec does in a namespace, which is named after it.
type part struct {
	name, sentence string
	do             func(*namespace)
}

// spec adds a spec with a namespace of its own.
func spec(name, sentence string, run func(*namespace), decorators ...any) {
	addSpec([]part{{name, sentence, run}}, decorators)
}

// together adds a spec of parts that run at once. They concern different nodes, so that
// serial specs need not wait for each other.
func together(parts []part, decorators ...any) { addSpec(parts, decorators) }

// addSpec adds a spec to the container of its caller's caller. One that fails keeps what it
// made.
func addSpec(parts []part, decorators []any) {
	var sentences []string
	for _, one := range parts {
		sentences = append(sentences, one.name+": "+one.sentence)
	}
	run := func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { describeFailures(ctx, parts) }, NodeTimeout(kube.Patience))
		var all sync.WaitGroup
		for _, one := range parts {
			all.Go(func() {
				defer GinkgoRecover()
				one.run(ctx)
			})
		}
		all.Wait()
	}
	It(strings.Join(sentences, "; "), append([]any{Offset(2), SpecTimeout(specTimeout), run}, decorators...)...)
}

// run does one part, in its namespace.
func (p part) run(ctx context.Context) {
	n := &namespace{ctx, cluster, p.name}
	if err := n.create(n.object()); err != nil {
		Fail(err.Error())
	}
	p.do(n)
	scenario.Step("all that it made goes", n.clear)
}

// describeFailures reports the objects of a spec that failed, and keeps all others.
func describeFailures(ctx context.Context, parts []part) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, one := range parts {
		AddReportEntry("objects of "+one.name, cluster.Describe(ctx, one.name, one.name), ReportEntryVisibilityFailureOrVerbose)
	}
}

func (n *namespace) object() *corev1.Namespace {
	object := &corev1.Namespace{}
	object.Name, object.Labels = n.name, map[string]string{specLabel: n.name}
	return object
}

// clear removes the namespace, and waits until its pods and their volumes have gone. It
// goes a while after them, which left waits for.
func (n *namespace) clear() error {
	volumes := &corev1.PersistentVolumeList{}
	err := errors.Join(n.cluster.Client.List(n.ctx, volumes), n.cluster.Client.Delete(n.ctx, n.object()))
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		err = errors.Join(err, n.cluster.Client.DeleteAllOf(n.ctx, kind, client.InNamespace(n.name)))
	}
	if err != nil {
		return err
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if claim := volume.Spec.ClaimRef; claim == nil || claim.Namespace != n.name {
			continue
		}
		if err := n.gone(volume); err != nil {
			return err
		}
	}
	return n.soon(n.noPods)
}

func (n *namespace) noPods() error {
	all := &corev1.PodList{}
	err := n.cluster.Client.List(n.ctx, all, client.InNamespace(n.name))
	if err == nil && len(all.Items) > 0 {
		err = fmt.Errorf("%d pods are there", len(all.Items))
	}
	return err
}

// Soon is a step that is tried until it succeeds.
func (n *namespace) Soon(what string, try func() error) {
	GinkgoHelper()
	scenario.Step(what, func() error { return n.soon(try) })
}

func (n *namespace) soon(try func() error) error {
	return scenario.Within(n.ctx, kube.Patience, try)
}

// get reads an object.
func (n *namespace) get(object client.Object) error {
	return n.cluster.Client.Get(n.ctx, client.ObjectKeyFromObject(object), object)
}

// create creates objects.
func (n *namespace) create(objects ...client.Object) error {
	for _, object := range objects {
		if err := n.cluster.Client.Create(n.ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// change changes an object, whatever else changes it, too.
func (n *namespace) change(object client.Object, change func()) error {
	return n.soon(func() error {
		if err := n.get(object); err != nil {
			return err
		}
		change()
		return n.cluster.Client.Update(n.ctx, object)
	})
}

// remove deletes objects, and waits until they are gone.
func (n *namespace) remove(objects ...client.Object) error {
	for _, object := range objects {
		if err := n.cluster.Client.Delete(n.ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
		}
	}
	return n.gone(objects...)
}

// gone waits until objects are gone.
func (n *namespace) gone(objects ...client.Object) error {
	for _, object := range objects {
		err := n.soon(func() error {
			if err := n.get(object); err != nil {
				return client.IgnoreNotFound(err)
			}
			return fmt.Errorf("%T %s is there", object, object.GetName())
		})
		if err != nil {
			return err
		}
	}
	return nil
}
