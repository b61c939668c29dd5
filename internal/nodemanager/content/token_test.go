package content_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func token(audience string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: audience}}
}

//proves:projected/serviceAccountToken
func TestATokenIsClosedToAllButThePodsUserOrGroup(t *testing.T) {
	as := func(user int64) *corev1.SecurityContext { return &corev1.SecurityContext{RunAsUser: &user} }
	tests := map[string]struct {
		pod    corev1.PodSecurityContext
		own    []*corev1.SecurityContext
		chosen *int64
		want   string
	}{
		"no user known":             {own: []*corev1.SecurityContext{nil}, want: "vault 0644 root token for vault"},
		"one user of the pod":       {pod: corev1.PodSecurityContext{RunAsUser: new(int64(1000))}, own: []*corev1.SecurityContext{nil, nil}, want: "vault 0600 1000 token for vault"},
		"one user of containers":    {own: []*corev1.SecurityContext{as(7), as(7)}, want: "vault 0600 7 token for vault"},
		"several users":             {own: []*corev1.SecurityContext{as(7), as(8)}, want: "vault 0644 root token for vault"},
		"one user, and one unknown": {own: []*corev1.SecurityContext{as(7), nil}, want: "vault 0644 root token for vault"},
		"a container of its own":    {pod: corev1.PodSecurityContext{RunAsUser: new(int64(1000))}, own: []*corev1.SecurityContext{as(7)}, want: "vault 0600 7 token for vault"},
		"a group":                   {pod: corev1.PodSecurityContext{FSGroup: new(int64(2000))}, own: []*corev1.SecurityContext{nil}, want: "vault 0600 root token for vault"},
		"a user that is chosen":     {own: []*corev1.SecurityContext{as(7)}, chosen: new(int64(9)), want: "vault 0600 9 token for vault"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := web()
			pod.Spec.SecurityContext, pod.Spec.Containers = &test.pod, nil
			for _, security := range test.own {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{SecurityContext: security})
			}
			source := token("vault")
			source.ServiceAccountToken.User = test.chosen
			if got, _, err := shown(t, cluster(), pod, of(source)); err != nil || got != test.want {
				t.Errorf("shown: %s (%v), want %s", got, err, test.want)
			}
		})
	}
}

func TestAVolumeIsRenewedWithTheFirstOfItsTokens(t *testing.T) {
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	reader := cluster()
	reader.renew = map[string]time.Time{"vault": late, "api": early}
	for _, sources := range [][]corev1.VolumeProjection{{token("vault"), token("api")}, {token("api"), token("vault")}, {token("never"), token("api"), token("never")}} {
		sources[len(sources)-1].ServiceAccountToken.Path = "last"
		if _, renew, err := shown(t, reader, web(), of(sources...)); err != nil || !renew.Equal(early) {
			t.Errorf("renewed at %v (%v)", renew, err)
		}
	}
	if _, renew, err := shown(t, reader, web(), ofSecret("tls")); err != nil || !renew.IsZero() {
		t.Errorf("a secret is renewed at %v (%v)", renew, err)
	}
}
