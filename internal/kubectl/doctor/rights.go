package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
)

// needs are rights without which the programs can't do their main work, as
// "verb group/resource[/subresource]". The whole roles are in config/rbac.
var (
	managerNeeds = []string{
		"patch storage.k8s.io/storageclasses", "patch /persistentvolumes", "delete /persistentvolumes", "patch /persistentvolumeclaims",
		"patch /persistentvolumeclaims/status", "patch storage.k8s.io/volumeattachments/status", "create stowage.dev/nodevolumes", "patch stowage.dev/storagebackends/status",
	}
	agentNeeds = []string{"watch stowage.dev/nodedisks", "watch stowage.dev/nodevolumes", "patch stowage.dev/nodevolumes/status", "patch stowage.dev/nodedisks/status"}
)

// askRights asks the API server whether the service accounts of the programs have their rights.
func askRights(ctx context.Context, c *cluster.Cluster, o *objects) error {
	accounts := map[string][]string{}
	for i := range o.managers {
		accounts[account(o.managers[i].Namespace, o.managers[i].Spec.Template.Spec.ServiceAccountName)] = managerNeeds
	}
	for i := range o.agents {
		accounts[account(o.agents[i].Namespace, o.agents[i].Spec.Template.Spec.ServiceAccountName)] = agentNeeds
	}
	writer, err := c.Client()
	if err != nil {
		return err
	}
	for user, needs := range accounts {
		for _, need := range needs {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groupsOf(user), ResourceAttributes: attributes(need)}}
			err := writer.Create(ctx, review)
			switch {
			case apierrors.IsForbidden(err):
				o.unasked = err.Error()
				return nil
			case err != nil:
				return fmt.Errorf("asking the rights of %s: %w", user, err)
			}
			o.asked++
			if !review.Status.Allowed {
				o.denied = append(o.denied, user+" may not "+need)
			}
		}
	}
	return nil
}

func account(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// groupsOf are the groups in which the API server puts a service account.
func groupsOf(user string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + strings.Split(user, ":")[2], "system:authenticated"}
}

// attributes parses "verb group/resource[/subresource]".
func attributes(need string) *authorizationv1.ResourceAttributes {
	verb, what, _ := strings.Cut(need, " ")
	parts := append(strings.Split(what, "/"), "")
	return &authorizationv1.ResourceAttributes{Verb: verb, Group: parts[0], Resource: parts[1], Subresource: parts[2]}
}
