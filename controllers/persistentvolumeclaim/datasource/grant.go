package datasource

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

const (
	// grantsPage is how many ReferenceGrants are read at once, and maxGrants how many of a namespace: tenants make them.
	grantsPage = 25
	maxGrants  = 1000
	// grantReaders is how many claims read them at once.
	grantReaders = 4
)

// grants reads whether a namespace lets claims of another one begin as copies of what it has.
type grants struct {
	live client.Reader
	// readers has an element for each claim that reads.
	readers chan struct{}
}

func newGrants(live client.Reader) grants { return grants{live, make(chan struct{}, grantReaders)} }

// check returns an error of kind Unavailable while no ReferenceGrant lets a claim have its source, which is in another namespace. It
// comes before the source is read, and says nothing of what there is.
func (g grants) check(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	select {
	case g.readers <- struct{}{}:
		defer func() { <-g.readers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ref := provisioned.DataSource(claim)
	next := ""
	for range maxGrants / grantsPage {
		page := &gatewayv1beta1.ReferenceGrantList{}
		err := g.live.List(ctx, page, client.InNamespace(*ref.Namespace), client.Limit(grantsPage), client.Continue(next))
		switch {
		case meta.IsNoMatchError(err):
			return backend.Unavailable.Errorf("the claim's %s is in namespace %s, and ReferenceGrants can't be read: install their CRD (%s), "+
				"or create the claim in that namespace", ref.Kind, *ref.Namespace, gatewayv1beta1.GroupVersion)
		case err != nil:
			return fmt.Errorf("listing the ReferenceGrants of namespace %s: %w", *ref.Namespace, err)
		case slices.ContainsFunc(page.Items, func(grant gatewayv1beta1.ReferenceGrant) bool { return allows(grant.Spec, claim.Namespace, ref) }):
			return nil
		case page.Continue == "":
			return backend.Unavailable.Errorf("no ReferenceGrant of namespace %s lets claims of namespace %s use its %s %s: create one there, "+
				"or create the claim in that namespace", *ref.Namespace, claim.Namespace, ref.Kind, ref.Name)
		}
		next = page.Continue
	}
	return backend.Unavailable.Errorf("none of the first %d ReferenceGrants of namespace %s lets claims of namespace %s use its %s %s: remove some there",
		maxGrants, *ref.Namespace, claim.Namespace, ref.Kind, ref.Name)
}

// allows reports whether a grant lets claims of a namespace refer to an object.
func allows(grant gatewayv1beta1.ReferenceGrantSpec, namespace string, to *corev1.TypedObjectReference) bool {
	return slices.ContainsFunc(grant.From, func(from gatewayv1beta1.ReferenceGrantFrom) bool {
		return from.Group == corev1.GroupName && from.Kind == provisioned.ClaimKind && string(from.Namespace) == namespace
	}) && slices.ContainsFunc(grant.To, func(allowed gatewayv1beta1.ReferenceGrantTo) bool {
		return string(allowed.Group) == ptr.Deref(to.APIGroup, "") && string(allowed.Kind) == to.Kind &&
			(ptr.Deref(allowed.Name, "") == "" || string(*allowed.Name) == to.Name)
	})
}
