package datasource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// copiedFor is the annotation of a claim that names, as NAMESPACE/NAME/UID, the last claims of other namespaces that were let to begin as
// copies of its volume. They are read live before the claim goes: no list of all namespaces is needed.
const copiedFor = "stowage.dev/copied-for"

// maxNoted is how many copies are noted. Of older ones, the cache alone shows that they are being made.
const maxNoted = 8

// noteCopy names a copy on its source, in memory, and reports whether that is new.
func noteCopy(source, clone *corev1.PersistentVolumeClaim) bool {
	note := strings.Join([]string{clone.Namespace, clone.Name, string(clone.UID)}, "/")
	noted := notesOf(source)
	if slices.Contains(noted, note) {
		return false
	}
	noted = slices.Insert(noted, 0, note)
	metav1.SetMetaDataAnnotation(&source.ObjectMeta, copiedFor, strings.Join(noted[:min(len(noted), maxNoted)], ","))
	return true
}

// notesOf are the copies that a claim names. Its owner can write the annotation, too: no more are read than are noted.
func notesOf(source *corev1.PersistentVolumeClaim) []string {
	noted := strings.SplitN(source.Annotations[copiedFor], ",", maxNoted+1)
	return slices.DeleteFunc(noted[:min(len(noted), maxNoted)], func(note string) bool { return strings.Count(note, "/") != 2 })
}

// awaitNoted waits for the copies that a claim names. The note proves that they may be.
func (f *Finder) awaitNoted(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*step.Wait, error) {
	for _, note := range notesOf(claim) {
		parts := strings.Split(note, "/")
		clone, key := &corev1.PersistentVolumeClaim{}, client.ObjectKey{Namespace: parts[0], Name: parts[1]}
		switch err := f.live.Get(ctx, key, clone); {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading claim %s, a copy of claim %s/%s: %w", key, claim.Namespace, claim.Name, err)
		case err == nil && string(clone.UID) == parts[2] && isCopyOf(clone, claim) && provisioned.HasIntent(clone):
			return waitForCopy(key.String()), nil
		}
	}
	return nil, nil
}
