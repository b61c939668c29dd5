package persistentvolume

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/reference"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	plugins "k8s.io/kubernetes/pkg/volume"
	"k8s.io/utils/ptr"
)

const syncInterval = 100 * time.Millisecond

// provisioner is an external provisioner, as sig-storage-lib's is, that makes volumes
// with the test's own plug-ins: for claims whose storage-provisioner annotation names
// one. It deletes released volumes of its own, and no others.
type provisioner struct {
	client  clientset.Interface
	plugins map[string]plugins.ProvisionableVolumePlugin

	working sync.WaitGroup
	// begun has the claims that were provisioned, or are.
	begun map[types.UID]bool
}

func newProvisioner(parameters ControllerParameters) *provisioner {
	p := &provisioner{client: parameters.KubeClient, plugins: map[string]plugins.ProvisionableVolumePlugin{}, begun: map[types.UID]bool{}}
	for _, plugin := range parameters.VolumePlugins {
		if able, ok := plugin.(plugins.ProvisionableVolumePlugin); ok && parameters.EnableDynamicProvisioning {
			p.plugins[plugin.GetPluginName()] = able
		}
	}
	return p
}

func (p *provisioner) run(ctx context.Context) {
	defer p.working.Wait()
	if len(p.plugins) == 0 {
		return
	}
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := p.sync(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "external provisioner")
		}
	}
}

func (p *provisioner) sync(ctx context.Context) error {
	claims, err := p.client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if p.plugins[claim.Annotations[volume.AnnStorageProvisioner]] == nil || claim.Spec.VolumeName != "" || p.begun[claim.UID] {
			continue
		}
		class, err := p.client.StorageV1().StorageClasses().Get(ctx, ptr.Deref(claim.Spec.StorageClassName, ""), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the class of %s: %w", claim.Name, err)
		}
		if delayed(class) && claim.Annotations[volume.AnnSelectedNode] == "" {
			continue
		}
		p.begun[claim.UID] = true
		p.working.Go(func() {
			if err := p.provision(ctx, claim, class); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "external provisioner", "claim", klog.KObj(claim))
			}
		})
	}
	return p.deleteReleased(ctx)
}

func delayed(class *storagev1.StorageClass) bool {
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// provision makes a volume that is bound to the claim from its creation on.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	reclaim := ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	maker, err := p.plugins[class.Provisioner].NewProvisioner(klog.FromContext(ctx), plugins.VolumeOptions{
		PVC: claim, PVName: "pvc-" + string(claim.UID), PersistentVolumeReclaimPolicy: reclaim, Parameters: class.Parameters,
	})
	if err != nil {
		return err
	}
	made, err := maker.Provision(nil, class.AllowedTopologies)
	if err != nil {
		return fmt.Errorf("provisioning: %w", err)
	}
	if made.Spec.ClaimRef, err = reference.GetReference(legacyscheme.Scheme, claim); err != nil {
		return err
	}
	made.Spec.StorageClassName = class.Name
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, volume.AnnDynamicallyProvisioned, class.Provisioner)
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, made, metav1.CreateOptions{})
	return err
}

func (p *provisioner) deleteReleased(ctx context.Context) error {
	volumes, err := p.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		if pv.Status.Phase != corev1.VolumeReleased || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
			p.plugins[pv.Annotations[volume.AnnDynamicallyProvisioned]] == nil || pv.DeletionTimestamp != nil {
			continue
		}
		err := p.client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pv.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting volume %s: %w", pv.Name, err)
		}
	}
	return nil
}
