package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runBare is the limit of the machine: the writes that the manager sends, for every
// claim there is, by as many workers, with the verbs, the encoding and the watches
// of the manager, and without a thought. Claim and volume number i belong together;
// where no volumes are, there is none. It stays until it is told to end, as a
// controller does.
func runBare(ctx context.Context, kubeconfig string, write bareWrites) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading how to reach the API server: %w", err)
	}
	config.QPS = noClientLimit
	writer, err := newClient(config)
	if err != nil {
		return err
	}
	watched, err := startCache(ctx, config, writer.Scheme())
	if err != nil {
		return err
	}
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := watched.List(ctx, claims); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	if err := watched.List(ctx, volumes); err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	byName := map[string]*corev1.PersistentVolume{}
	for i := range volumes.Items {
		byName[volumes.Items[i].Name] = &volumes.Items[i]
	}
	err = inParallel(ctx, len(claims.Items), func(i int) error {
		claim := &claims.Items[i]
		return write(ctx, writer, claim, byName[volumeOf(claim.Name)])
	})
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// startCache starts the watches, and waits until they know what there is.
func startCache(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (cache.Cache, error) {
	watched, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	for _, kind := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}} {
		if _, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	go func() { _ = watched.Start(ctx) }() // it only ends with ctx
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	return watched, nil
}

// bareWrites are the writes for one claim and, where it is there before, its volume.
type bareWrites func(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error

type object = map[string]any

func bareBind(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	err := patch(ctx, writer, pv, object{
		"metadata": object{"resourceVersion": pv.ResourceVersion, "annotations": object{"pv.kubernetes.io/bound-by-controller": "yes"}},
		"spec": object{"claimRef": object{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.Namespace, "name": claim.Name, "uid": claim.UID,
		}},
	})
	if err != nil {
		return err
	}
	if err := barePhase(ctx, writer, pv); err != nil {
		return err
	}
	if err := patch(ctx, writer, claim, object{
		"metadata": object{"resourceVersion": claim.ResourceVersion, "annotations": object{
			"pv.kubernetes.io/bound-by-controller": "yes", "pv.kubernetes.io/bind-completed": "yes",
		}},
		"spec": object{"volumeName": pv.Name},
	}); err != nil {
		return err
	}
	return bareStatus(ctx, writer, claim, pv)
}

func barePhase(ctx context.Context, writer client.Client, pv *corev1.PersistentVolume) error {
	return patchStatus(ctx, writer, pv, types.MergePatchType, object{
		"metadata": object{"resourceVersion": pv.ResourceVersion},
		"status":   object{"phase": corev1.VolumeBound},
	})
}

func bareStatus(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	return patchStatus(ctx, writer, claim, types.StrategicMergePatchType, object{"status": object{
		"phase": corev1.ClaimBound, "accessModes": pv.Spec.AccessModes, "capacity": pv.Spec.Capacity,
		"conditions": []object{{
			"type": "stowage.dev/Bindable", "status": "True", "reason": "Bound", "message": "bound to volume " + pv.Name,
			"lastTransitionTime": claim.CreationTimestamp,
		}, {
			"type": corev1.PersistentVolumeClaimUnused, "status": "True", "reason": "NoPodsUsingPVC",
			"message": "no pod that is yet to end refers to this claim", "lastTransitionTime": claim.CreationTimestamp,
		}},
	}})
}

func patch(ctx context.Context, writer client.Client, target client.Object, body object) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return writer.Patch(ctx, target, client.RawPatch(types.MergePatchType, data))
}

func patchStatus(ctx context.Context, writer client.Client, target client.Object, kind types.PatchType, body object) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return writer.Status().Patch(ctx, target, client.RawPatch(kind, data))
}
