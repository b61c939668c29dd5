package index

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// VolumesOf returns the PersistentVolumes with a handle, in the format of HandleOf, from the
// cache. They must not be changed.
func VolumesOf(ctx context.Context, cache client.Reader, handle string, options ...client.ListOption) ([]corev1.PersistentVolume, error) {
	found, err := volumes(ctx, cache, client.MatchingFields{VolumesByHandle: bucket(handle)}, options)
	if err != nil {
		return nil, fmt.Errorf("listing the volumes of handle %s: %w", handle, err)
	}
	return slices.DeleteFunc(found, func(pv corev1.PersistentVolume) bool { return !slices.Contains(HandleOf(&pv), handle) }), nil
}

// VolumesFor returns the PersistentVolumes with a claimRef of this namespace and name, from the
// cache. They must not be changed.
func VolumesFor(ctx context.Context, cache client.Reader, claim types.NamespacedName, options ...client.ListOption) ([]corev1.PersistentVolume, error) {
	found, err := volumes(ctx, cache, client.MatchingFields{VolumesByClaim: bucket(claim.String())}, options)
	if err != nil {
		return nil, fmt.Errorf("listing the volumes of claim %s: %w", claim, err)
	}
	return slices.DeleteFunc(found, func(pv corev1.PersistentVolume) bool { return !slices.Contains(ClaimRefOf(&pv), claim.String()) }), nil
}

// ClaimsNaming returns the claims that name a volume in spec.volumeName, from the cache. They must
// not be changed.
func ClaimsNaming(ctx context.Context, cache client.Reader, volume string, options ...client.ListOption) ([]corev1.PersistentVolumeClaim, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	options = append(options, client.MatchingFields{ClaimsByVolume: bucket(volume)}, client.UnsafeDisableDeepCopy)
	if err := cache.List(ctx, claims, options...); err != nil {
		return nil, fmt.Errorf("listing the claims of volume %s: %w", volume, err)
	}
	return slices.DeleteFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool { return claim.Spec.VolumeName != volume }), nil
}

func volumes(ctx context.Context, cache client.Reader, fields client.MatchingFields, options []client.ListOption) ([]corev1.PersistentVolume, error) {
	volumes := &corev1.PersistentVolumeList{}
	err := cache.List(ctx, volumes, append(options, fields, client.UnsafeDisableDeepCopy)...)
	return volumes.Items, err
}

// buckets is how many values a field has in an index, if hardly two objects are alike in it. An index has a set
// of objects for each value, and a set takes more than 200 bytes, even of one object. A lookup
// goes through 50 objects of 100,000.
const buckets = 2048

// seed is another one in each process: a tenant can't choose names that share a bucket.
var seed = maphash.MakeSeed()

// bucket returns the index value of a text. Several texts have the same: the caller compares what it
// finds.
func bucket(text string) string {
	return strconv.FormatUint(maphash.String(seed, text)%buckets, 36)
}

// bucketed returns an index function of buckets.
func bucketed[T client.Object](values func(T) []string) client.IndexerFunc {
	return of(func(object T) []string {
		found := values(object)
		hashed := make([]string, 0, len(found))
		for _, value := range found {
			hashed = append(hashed, bucket(value))
		}
		return hashed
	})
}
