package content

import (
	"context"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ownerOnly is the mode of a token that only its owner and the pod's group read.
const ownerOnly os.FileMode = 0o600

func (c *collector) addToken(ctx context.Context, source *corev1.ServiceAccountTokenProjection) error {
	token, err := c.reader.Token(ctx, c.pod, source)
	if err != nil {
		return err
	}
	c.renew = sooner(c.renew, token.Renew)
	origin := "the token of service account " + c.pod.Namespace + "/" + c.pod.Spec.ServiceAccountName
	file := found{File: c.tokenFile(token, source.User), origin: origin, chosen: true}
	return c.put(source.Path, file)
}

// sooner returns the earlier of two times; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tokenFile returns a token's file. Other users can't read it if its readers are known: one
// user, or the pod's fsGroup, which all files of the volume have.
func (c *collector) tokenFile(token Token, user *int64) File {
	file := c.file([]byte(token.Value), nil, user)
	if file.Owner == nil {
		file.Owner = userOf(c.pod)
	}
	security := c.pod.Spec.SecurityContext
	if file.Owner != nil || security != nil && security.FSGroup != nil {
		file.Mode = ownerOnly
	}
	return file
}

// userOf returns the user of all containers of a pod; nil if that is unknown, or not one user.
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

// contextsOf returns the security contexts of all containers; nil for those without one.
func contextsOf(pod *corev1.Pod) []*corev1.SecurityContext {
	var contexts []*corev1.SecurityContext
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		contexts = append(contexts, container.SecurityContext)
	}
	for _, container := range pod.Spec.EphemeralContainers {
		contexts = append(contexts, container.SecurityContext)
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
