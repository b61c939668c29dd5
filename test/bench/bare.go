package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// bare is the limit of the machine: a client that sends the writes of the program that it
// is compared with, by as many workers, with the same verbs, encoding and watches, and
// without any logic.
type bare struct {
	client.Client
	watched cache.Cache
}

// runBare has a bare client watch what the program watches, and then do its work. It stays
// until it is stopped, as a controller does.
func runBare(ctx context.Context, kubeconfig string, watched []client.Object, work func(ctx context.Context, b bare) error) error {
	config, err := unlimited(kubeconfig)
	if err != nil {
		return err
	}
	b := bare{}
	if b.Client, err = cluster.NewClient(config); err != nil {
		return err
	}
	// Only the bare client of a node watches pods.
	ofTheNode := map[client.Object]cache.ByObject{&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", mounterNode)}}
	if b.watched, err = cache.New(config, cache.Options{Scheme: b.Scheme(), ByObject: ofTheNode}); err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	for _, kind := range watched {
		if _, err := b.watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	go func() { _ = b.watched.Start(ctx) }() // it only ends with ctx
	if !b.watched.WaitForCacheSync(ctx) {
		return fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	if err := work(ctx, b); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// unlimited reads a kubeconfig, for a client that waits for no rate limit of its own.
func unlimited(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	config.QPS = noClientLimit
	return config, nil
}

// claimWrites are the writes for one claim and, where it is there before, its volume.
type claimWrites func(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error

func ofClaims(write, remove claimWrites) func(ctx context.Context, kubeconfig string, _ []string) error {
	return func(ctx context.Context, kubeconfig string, _ []string) error {
		return runBareClaims(ctx, kubeconfig, write, remove)
	}
}

// runBareClaims sends writes for all claims and, once one of them is deleted, those that remove it with its volume; nil: it
// removes none. Claim and volume number i belong together.
func runBareClaims(ctx context.Context, kubeconfig string, write, remove claimWrites) error {
	kinds := []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}}
	return runBare(ctx, kubeconfig, kinds, func(ctx context.Context, b bare) error {
		claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
		if err := b.watched.List(ctx, claims); err != nil {
			return fmt.Errorf("listing claims: %w", err)
		}
		if err := b.watched.List(ctx, volumes); err != nil {
			return fmt.Errorf("listing volumes: %w", err)
		}
		byName := map[string]*corev1.PersistentVolume{}
		for i := range volumes.Items {
			byName[volumes.Items[i].Name] = &volumes.Items[i]
		}
		send := func() error {
			return inParallel(ctx, len(claims.Items), func(i int) error {
				claim := &claims.Items[i]
				return write(ctx, b, claim, byName[volumeOf(claim.Name)])
			})
		}
		if remove == nil {
			return send()
		}
		deleted, err := b.deletedClaims(ctx, len(claims.Items))
		if err != nil {
			return err
		}
		if err := send(); err != nil {
			return err
		}
		return inParallel(ctx, len(claims.Items), func(int) error { return b.removeNext(ctx, deleted, remove) })
	})
}

// deletedClaims sends each of n claims as soon as it is to be deleted.
func (b bare) deletedClaims(ctx context.Context, n int) (<-chan *corev1.PersistentVolumeClaim, error) {
	deleted := make(chan *corev1.PersistentVolumeClaim, n)
	informer, err := b.watched.GetInformer(ctx, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return nil, fmt.Errorf("watching claims: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		claim := after.(*corev1.PersistentVolumeClaim)
		if before.(*corev1.PersistentVolumeClaim).DeletionTimestamp.IsZero() && !claim.DeletionTimestamp.IsZero() {
			deleted <- claim.DeepCopy()
		}
	}})
	return deleted, err
}

// removeNext removes the next claim that is to be deleted.
func (b bare) removeNext(ctx context.Context, deleted <-chan *corev1.PersistentVolumeClaim, remove claimWrites) error {
	select {
	case <-ctx.Done():
		return nil
	case claim := <-deleted:
		pv := &corev1.PersistentVolume{}
		if err := b.watched.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
			return fmt.Errorf("reading the volume of a claim: %w", err)
		}
		return remove(ctx, b, claim, pv)
	}
}

type object = map[string]any

// bareBind sends the four writes of a bind: the volume's claimRef and status, the claim's
// volumeName and status.
func bareBind(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	err := writer.Patch(ctx, pv, merge{
		"metadata": object{"resourceVersion": pv.ResourceVersion, "annotations": object{annBound: "yes"}},
		"spec":     object{"claimRef": referenceTo(claim)},
	})
	if err != nil {
		return err
	}
	if err := barePhase(ctx, writer, pv, corev1.VolumeBound); err != nil {
		return err
	}
	if err := writer.Patch(ctx, claim, merge{
		"metadata": object{"resourceVersion": claim.ResourceVersion, "annotations": object{annBound: "yes", annBindCompleted: "yes"}},
		"spec":     object{"volumeName": pv.Name},
	}); err != nil {
		return err
	}
	return bareStatus(ctx, writer, claim, pv)
}

func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
}

func barePhase(ctx context.Context, writer client.Client, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) error {
	return writer.Status().Patch(ctx, pv, merge{
		"metadata": object{"resourceVersion": pv.ResourceVersion},
		"status":   object{"phase": phase},
	})
}

func bareStatus(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	condition := func(name corev1.PersistentVolumeClaimConditionType, reason, message string) object {
		return object{
			"type": name, "status": "True", "reason": reason, "message": message,
			"lastProbeTime": claim.CreationTimestamp, "lastTransitionTime": claim.CreationTimestamp,
		}
	}
	return writer.Status().Patch(ctx, claim, strategic{"status": object{
		"phase": corev1.ClaimBound, "accessModes": pv.Spec.AccessModes, "capacity": pv.Spec.Capacity,
		"conditions": []object{
			condition("stowage.dev/Bindable", "Bound", "bound to volume "+pv.Name),
			condition(corev1.PersistentVolumeClaimUnused, "NoPodsUsingPVC", "no pod that is yet to end refers to this claim"),
		},
	}})
}

// merge and strategic are patches: what the fields of an object become.
type (
	merge     object
	strategic object
)

func (merge) Type() types.PatchType     { return types.MergePatchType }
func (strategic) Type() types.PatchType { return types.StrategicMergePatchType }

func (m merge) Data(client.Object) ([]byte, error)     { return json.Marshal(m) }
func (s strategic) Data(client.Object) ([]byte, error) { return json.Marshal(s) }
