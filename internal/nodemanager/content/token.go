package content

import (
	"context"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ownerOnly is the mode of a token that only its owner, and the pod's group, read.
const ownerOnly os.FileMode = 0o600

func (g *gathering) addToken(ctx context.Context, source *corev1.ServiceAccountTokenProjection) error {
	token, err := g.reader.Token(ctx, g.pod, source)
	if err != nil {
		return err
	}
	g.renew = sooner(g.renew, token.Renew)
	origin := "the token of service account " + g.pod.Namespace + "/" + g.pod.Spec.ServiceAccountName
	file := found{File: g.tokenFile(token, source.User), origin: origin, chosen: true}
	return g.put(source.Path, file)
}

// sooner is the first of two times; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tokenFile is closed to others where it is known who must read it: one user, or the
// pod's group, which all files of the volume are given to.
func (g *gathering) tokenFile(token Token, user *int64) File {
	file := g.file([]byte(token.Value), nil, user)
	if file.Owner == nil {
		file.Owner = userOf(g.pod)
	}
	security := g.pod.Spec.SecurityContext
	if file.Owner != nil || security != nil && security.FSGroup != nil {
		file.Mode = ownerOnly
	}
	return file
}

// userOf is the user that all containers of a pod run as; nil if that isn't known, or
// they are several.
func userOf(pod *corev1.Pod) *int64 {
	var user *int64
	for _, security := range contextsOf(pod) {
		own := runAsUser(pod, security)
		if own == nil || user != nil && *own != *user {
			return nil
		}
		user = own
	}
	return user
}

// contextsOf is the security contexts of all containers; nil for those without one.
func contextsOf(pod *corev1.Pod) []*corev1.SecurityContext {
	var contexts []*corev1.SecurityContext
	for i := range pod.Spec.InitContainers {
		contexts = append(contexts, pod.Spec.InitContainers[i].SecurityContext)
	}
	for i := range pod.Spec.Containers {
		contexts = append(contexts, pod.Spec.Containers[i].SecurityContext)
	}
	for i := range pod.Spec.EphemeralContainers {
		contexts = append(contexts, pod.Spec.EphemeralContainers[i].SecurityContext)
	}
	return contexts
}

func runAsUser(pod *corev1.Pod, security *corev1.SecurityContext) *int64 {
	switch {
	case security != nil && security.RunAsUser != nil:
		return security.RunAsUser
	case pod.Spec.SecurityContext != nil:
		return pod.Spec.SecurityContext.RunAsUser
	default:
		return nil
	}
}
