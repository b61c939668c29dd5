package demo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stowage-dev/stowage/internal/mount"
)

// crowdManifest is one file with a claim and a pod for each of the crowd.
func (s *scenario) crowdManifest() string {
	var parts []string
	for i := range crowd {
		name := fmt.Sprintf("crowd-%02d", i)
		for _, file := range []string{
			s.manifest("claim.yaml", values{"NAME": name, "CLASS": "fast", "SIZE": "16Mi"}),
			s.manifest("pod.yaml", values{"NAME": name, "CLAIM": name}),
		} {
			s.do(func() error {
				content, err := os.ReadFile(file)
				parts = append(parts, string(content))
				return err
			})
		}
	}
	all := filepath.Join(s.cluster.Folder.Root(), "crowd.yaml")
	s.do(func() error { return os.WriteFile(all, []byte(strings.Join(parts, "---\n")), 0o600) })
	return all
}

// allMounted holds if every claim is Bound to the volume made for it, and that
// is mounted for the pod of the claim's name.
func (s *scenario) allMounted() condition {
	return func() error {
		claims, err := s.claims()
		if err != nil {
			return err
		}
		var missing []error
		for _, claim := range claims {
			var point mount.Point
			volume := "pvc-" + string(claim.UID)
			missing = append(missing, s.claimIsBound(claim.Name, volume)(), s.mounted(claim.Name, volume, &point)())
		}
		return errors.Join(missing...)
	}
}

// onePerClaim holds if there are as many provisioned volumes, in the API and on
// the disk, as claims.
func (s *scenario) onePerClaim(want int) condition {
	return func() error {
		volumes := &corev1.PersistentVolumeList{}
		if err := s.cluster.Client.List(s.ctx, volumes); err != nil {
			return err
		}
		made := 0
		for _, volume := range volumes.Items {
			if volume.Spec.CSI != nil {
				made++
			}
		}
		onDisk, err := s.onDiskAll()
		if err != nil {
			return err
		}
		if made != want || len(onDisk) != want {
			return fmt.Errorf("for %d claims there are %d volumes and %d directories", want, made, len(onDisk))
		}
		return nil
	}
}

// allGone holds if the namespace has no claim and no pod.
func (s *scenario) allGone() condition {
	return func() error {
		claims, err := s.claims()
		if err != nil {
			return err
		}
		pods := &corev1.PodList{}
		if err := s.cluster.Client.List(s.ctx, pods); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if len(claims)+len(pods.Items) > 0 {
			return fmt.Errorf("%d claims and %d pods are there", len(claims), len(pods.Items))
		}
		return nil
	}
}

// onDiskAll is the volumes that the backend's folder holds.
func (s *scenario) onDiskAll() ([]string, error) {
	return filepath.Glob(s.onDisk("pvc-*"))
}

// emptyDisk holds if the backend's folder has no volume, not even one that is
// about to be removed.
func (s *scenario) emptyDisk() error {
	left, err := s.onDiskAll()
	if err != nil {
		return err
	}
	deleting, err := os.ReadDir(s.onDisk(".deleting"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(left)+len(deleting) > 0 {
		return fmt.Errorf("on the disk are %v and, being deleted, %v", left, deleting)
	}
	return nil
}
